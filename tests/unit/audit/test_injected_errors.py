"""The audit finds what it claims: errors of every kind, injected at random places into tables, letters and records that are right."""

import hashlib
import os
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import orjson
import pytest
from auditing import loaded, read_range, result

from audit.checks.dead_letters import Letter, Letters, expected_letters, kinds_of_letters
from audit.reading.checkpoints import Stretch
from audit.verdicts.comparison import Comparison, Excuses

TIMES = int(os.environ.get("INJECTIONS", "25"))
"""How often each kind of error is injected, each time at a random place."""
START = datetime(2026, 1, 1, tzinfo=UTC)
LATE_MS = round((START + timedelta(hours=10)).timestamp() * 1000)
TABLE = result("taxi-borough-stats")
NUMBER = 120


def trip(rng, number):
    """A trip unlike any other, of the first half day."""
    ms = round((START + timedelta(seconds=rng.randrange(12 * 3600), milliseconds=number)).timestamp() * 1000)
    cents = rng.randrange(100, 10_000)
    fields = {"lpep_dropoff_datetime": ms, "PULocationID": rng.randrange(1, 260), "passenger_count": rng.randrange(1, 6)}
    return {**fields, "fare_amount": cents / 100, "trip_distance": round(cents / 400, 2)}


def rows_of(trips, first_late=10**9):
    """The rows of trips; those from `first_late` on are late if they are before ten."""
    recount = loaded(TABLE.facts, *map(orjson.dumps, trips), clock=START + timedelta(days=2))
    stretches = [Stretch("nyc-taxi", 0, 0, first_late, 0, 0), Stretch("nyc-taxi", 0, first_late, 10**10, LATE_MS, LATE_MS)]
    recount.judge(TABLE, stretches, 0)
    return {key: rows[-1] for key, rows in recount.written(TABLE, LATE_MS).items()}


@pytest.fixture(scope="module")
def right():
    rng = random.Random(7)
    trips = [trip(rng, number) for number in range(NUMBER)]
    return SimpleNamespace(trips=trips, rows=rows_of(trips, NUMBER // 2))


def without(items, place):
    return [*items[:place], *items[place + 1 :]]


def in_time(trips, place):
    """The number of late ones, with one that is late at the beginning, where it is in time; None if that one is not late."""
    is_late = place >= NUMBER // 2 and trips[place]["lpep_dropoff_datetime"] <= LATE_MS
    return ([trips[place], *without(trips, place)], NUMBER // 2 + 1) if is_late else None


def doubled(trips, place):
    """With a trip twice, as two events; None if it is late."""
    return ([*trips[:place], {**trips[place], "extra": 1}, *trips[place:]], NUMBER // 2 + 1) if place < NUMBER // 2 else None


def with_trip(trips, place, **fields):
    return [*trips[:place], {**trips[place], **fields}, *trips[place + 1 :]]


OF_RECORDS = {
    "a lost record": lambda trips, place: (without(trips, place), NUMBER // 2 - (place < NUMBER // 2)),
    "a doubled one": doubled,
    "a late one counted": in_time,
    "a wrong place": lambda trips, place: (with_trip(trips, place, PULocationID=264), NUMBER // 2),
    "a wrong hour": lambda trips, place: (
        with_trip(trips, place, lpep_dropoff_datetime=trips[place]["lpep_dropoff_datetime"] + 3_600_000),
        NUMBER // 2,
    ),
}
OF_ROWS = {
    "an amount rounded": lambda row: {**row, "fare_amount_sum": row["fare_amount_sum"] + Decimal("0.01")},
    "an amount as a double": lambda row: {**row, "fare_amount_avg": row["fare_amount_avg"] + Decimal("0.000001")},
    "a wrong average": lambda row: {**row, "passenger_count_avg": row["passenger_count_avg"] * (1 + 2**-50)},
    "a wrong schema": lambda row: {name: value for name, value in row.items() if name != "tip_amount_sum"},
    "a stale row": lambda row: {**row, "trips": row["trips"] - 1},
}


def is_counted(trips, place):
    return place < NUMBER // 2 or trips[place]["lpep_dropoff_datetime"] > LATE_MS


@pytest.mark.parametrize("kind", OF_RECORDS)
def test_an_error_in_what_is_counted_is_found(right, kind):
    rng, injected = random.Random(kind), 0
    while injected < TIMES:
        place = rng.randrange(NUMBER)
        changed = OF_RECORDS[kind](right.trips, place)
        if changed is None or not (is_counted(right.trips, place) or kind == "a late one counted"):
            continue
        injected += 1
        found = rows_of(*changed)
        if kind == "a wrong hour" and found == right.rows:  # it became late, and was alone
            continue
        assert Comparison(found, right.rows).differences(), f"{kind}: trip {place}, {right.trips[place]}"


@pytest.mark.parametrize("is_real_time", [False, True], ids=["in micro-batches", "in real-time mode"])
@pytest.mark.parametrize("kind", OF_ROWS)
def test_an_error_in_a_row_is_found_and_no_other_row_is_blamed(right, kind, is_real_time):
    rng, excuses = random.Random(kind), Excuses(is_real_time=is_real_time, growing=TABLE.growing)
    for key in rng.choices(sorted(right.rows), k=TIMES):
        row = right.rows[key]
        (wrong,) = Comparison({**right.rows, key: OF_ROWS[kind](row)}, right.rows, excuses=excuses).differences()
        assert (wrong.kind, wrong.where) == ("different", key.decode())
        if is_real_time:
            later = {key: [{**row, "trips": row["trips"] + 1}]}
            (wrong,) = Comparison({key: OF_ROWS[kind](row)}, {key: row}, later, excuses).differences()
            assert wrong.kind == "different", "also of a row that a record is to change"


def test_a_row_that_is_gone_one_that_should_be_gone_and_a_shifted_window_are_found(right):
    rng = random.Random(1)
    for key in rng.choices(sorted(right.rows), k=TIMES):
        rest = {other: row for other, row in right.rows.items() if other != key}
        shifted = key.replace(b":00:00Z", b":00:01Z")
        found = [
            Comparison(*tables).counts
            for tables in ((rest, right.rows), (right.rows, rest), ({**rest, shifted: right.rows[key]}, right.rows))
        ]
        others = len(rest)
        assert found == [{"equal": others, "missing": 1}, {"equal": others, "extra": 1}, {"equal": others, "missing": 1, "extra": 1}]


def test_a_lost_letter_one_too_many_one_with_another_reason_and_one_with_other_bytes_are_found():
    letters = result("taxi-dead-letters")
    rng = random.Random(2)
    values = [orjson.dumps(trip(rng, number)) if number % 3 else b"broken %d" % number for number in range(NUMBER)]
    expected, timestamps = expected_letters(loaded(letters.facts, *values, clock=START + timedelta(days=2)).database, letters)
    right = {origin: [Letter(one.headers, one.digest, one.reasons[:1])] for origin, one in expected.items()}
    assert len(right) == NUMBER // 3

    def kinds(by_origin):
        found = kinds_of_letters(expected, timestamps, Letters(by_origin, None), read_range("nyc-taxi", NUMBER))
        return {origin: kind for origin, kind in found.items() if kind != "equal"}

    assert kinds(right) == {}
    part = replace(read_range("nyc-taxi", 60), first_offsets={("nyc-taxi", 0): 30}, is_part=True)
    assert set(kinds_of_letters(expected, timestamps, Letters(right, None), part)) == {
        ("nyc-taxi", 0, offset) for offset in range(30, 60, 3)
    }
    for origin in rng.choices(sorted(right), k=TIMES):
        (own,), other = right[origin], ("nyc-taxi", 0, rng.randrange(NUMBER // 3) * 3 + 1)
        assert kinds({one: letter for one, letter in right.items() if one != origin}) == {origin: "missing"}
        assert kinds({**right, other: [own]}) == {other: "extra"}
        for wrong in (
            Letter(own.headers, own.digest, ("another",)),
            Letter(own.headers, hashlib.sha256(b"other").hexdigest(), own.reasons),
            Letter({**own.headers, "offset": "1000"}, own.digest, own.reasons),
        ):
            assert kinds({**right, origin: [wrong]}) == {origin: "different"}
