"""What benchmarks/peers/kill.py calls lost, too many and said. What the engines do is measured (docs/why-spark.md)."""

from datetime import UTC, datetime, timedelta
from io import BytesIO

import orjson
import pytest

from benchmarks.peers.kill import EXACT, Outcome, said, told, truth
from producers.delivery.events import Event
from producers.delivery.faults import Kind, Record

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
KNOWN = "camera-1768a05f24a57687"
"""Its zip code is 10025."""


def record(kind, *facts, value=b"document"):
    """facts: pairs of a camera and the minutes after ten o'clock."""
    sightings = tuple((device, round((TEN + timedelta(minutes=minutes)).timestamp() * 1000)) for device, minutes in facts)
    return Record(kind, Event(0, 0, None, value, sightings))


def row(zip_code, hour, count):
    """The key and the value of a row; without a count, of a tombstone."""
    key = {"zip_code": zip_code, "window": {"start": f"2026-01-01T{hour}:00:00Z"}}
    return orjson.dumps(key), None if count is None else orjson.dumps(key | {"count": count})


RIGHT = truth(
    [
        record(Kind.ON_TIME, (KNOWN, 0), (KNOWN, 59), ("nobody", 60)),
        record(Kind.LATE, (KNOWN, 30)),
        record(Kind.TOO_LATE, (KNOWN, 30), (KNOWN, 31)),
        record(Kind.DUPLICATE, (KNOWN, 0)),
        record(Kind.CORRUPT, value=b"damaged"),
        record(Kind.CORRUPT, value=b"damaged"),
    ]
)
ROWS, LETTERS = [row("10025", 10, 3), row("unknown", 11, 1)], [b"damaged", b"damaged"]


def test_a_sighting_counts_once_however_many_documents_have_it_and_is_too_late_only_if_all_of_them_are():
    assert RIGHT.in_time == {("10025", "2026-01-01T10:00:00Z"): 3, ("unknown", "2026-01-01T11:00:00Z"): 1}
    assert RIGHT.too_late == {("10025", "2026-01-01T10:00:00Z"): 1}
    assert RIGHT.corrupt == {b"damaged": 2}


@pytest.mark.parametrize(
    ("rows", "letters", "found"),
    [
        (ROWS, LETTERS, EXACT),
        ([row("10025", 10, 4), ROWS[1]], LETTERS, EXACT),
        ([row("10025", 10, 9), *ROWS], LETTERS, EXACT),
        (ROWS, [*LETTERS, b"damaged"], EXACT),
        ([row("10025", 10, 1), ROWS[1]], LETTERS, Outcome(2, 0, 1, 0)),
        (ROWS[:1], LETTERS, Outcome(1, 0, 1, 0)),
        ([*ROWS, row("unknown", 11, None)], LETTERS, Outcome(1, 0, 1, 0)),
        ([row("10025", 11, 5), *ROWS, row("10025", 11, None)], LETTERS, EXACT),
        ([row("10025", 10, 6), ROWS[1]], LETTERS, Outcome(0, 2, 1, 0)),
        ([*ROWS, row("10025", 11, 5)], LETTERS, Outcome(0, 5, 1, 0)),
        (ROWS, LETTERS[:1], Outcome(0, 0, 0, 1)),
        ([], [b"another"], Outcome(4, 0, 2, 2)),
    ],
    ids=[
        "exact",
        "one that came too late is counted",
        "a row is corrected",
        "a dead letter is there twice",
        "two of a row are lost",
        "a row is missing",
        "a row is deleted",
        "a row that should not be there is deleted",
        "two are counted twice",
        "a row that should not be there",
        "one of two equal dead letters is lost",
        "nothing is written",
    ],
)
def test_what_is_lost_and_what_is_too_many(rows, letters, found):
    assert Outcome.of(rows, letters, RIGHT) == found


def test_the_line_of_an_engine_says_of_how_many():
    assert told(Outcome(2, 0, 1, 1), RIGHT) == ("of 4 sightings in 2 rows, 2 lost, 0 too many, 1 rows wrong; of 2 dead letters, 1 lost")


def test_lines_of_the_log_that_differ_in_numbers_only_are_one():
    log = BytesIO(b"INFO started\nWARN offset 12 is gone\nWARN offset 13 is gone\nERROR no broker\n")
    assert said(log) == "2 x WARN offset # is gone; 1 x ERROR no broker"
    assert said(BytesIO(b"INFO started\n")) == "nothing"


def test_a_late_row_is_said_and_a_name_with_the_word_in_it_is_not():
    assert said(BytesIO(b"INFO 2 rows came too late\nINFO nest-template ends\nINFO 2 dead letters\nINFO nest-dead-letters ends\n")) == (
        "1 x INFO # rows came too late; 1 x INFO # dead letters"
    )
