"""What the Wikimedia page says of the stream itself: records with explicit times in, words and numbers out."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.domains.wikimedia_stream import lag_of, newest_report, sources_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Record:
    """A record as Kafka's consumer gives it."""

    def __init__(self, value=b"1", key=b"wikimedia-edit-stats", source=None, age=timedelta(0)):
        self.value, self.key = lambda: value, lambda: key
        self.headers = lambda: [("source", source)] if source else None
        self.timestamp = lambda: (1, int((NOON - age).timestamp() * 1000))


def report(event, query="wikimedia-edit-stats", seconds_ago=5, **fields):
    row = {"event": event, "time": f"{NOON - timedelta(seconds=seconds_ago):%Y-%m-%dT%H:%M:%SZ}", **fields}
    return Record(json.dumps(row).encode(), query.encode())


def progress(lag, **fields):
    return report("progress", source_lag=lag, batch_ms=412, **fields)


def said(*records):
    """The number and its meaning, at noon."""
    return lag_of(newest_report(records), NOON)[1:]


def test_each_source_is_named_once():
    assert sources_of([Record(source=word) for word in (b"live", b"simulated", b"live")]) == ["live", "simulated"]


def test_a_record_without_a_source_has_an_empty_one():
    assert sources_of([Record()]) == [""]


def test_a_partition_whose_last_record_is_old_says_nothing_of_where_records_come_from_now():
    assert sources_of([Record(source=b"live"), Record(source=b"recorded", age=timedelta(seconds=61))]) == ["live"]
    assert sources_of([Record(source=b"live"), Record(source=b"recorded", age=timedelta(seconds=60))]) == ["live", "recorded"]


def test_the_lag_is_that_of_all_partitions_with_the_length_and_age_of_the_batch():
    number, meaning = said(progress({"wikimedia-0": 1_000, "wikimedia-1": 234}))
    assert number == "1,234"
    assert "412 ms" in meaning
    assert "5 s ago" in meaning


def test_the_newest_report_counts_and_that_of_another_query_does_not():
    assert said(progress({"a": 9}), progress({"a": 5}), progress({"a": 7}, query="another"))[0] == "5"


@pytest.mark.parametrize(
    "rubbish", [b"no json", b"[]", b'{"event": "progress", "time": "2026-11-21T12:00:00Z", "source_lag": "many"}', None]
)
def test_a_report_that_is_none_is_passed_over(rubbish):
    assert said(progress({"a": 5}), Record(rubbish))[0] == "5"


def test_a_query_that_waits_has_nothing_to_read_and_one_that_ended_or_says_nothing_has_no_number():
    nothing = "\N{EN DASH}"
    assert said(report("idle"))[0] == "0"
    assert said(report("terminated"))[0] == nothing
    assert "wikimedia-edit-stats" in said(report("terminated"))[1]
    assert said(progress({"a": 5}, seconds_ago=61))[0] == nothing
    assert said()[0] == nothing
