"""Sessions with early results as a stream: rows at once, tombstones for what is joined, and no state for what is over."""

import random
from datetime import timedelta

import pytest
from plain import sessions_of
from streaming import Record, at

from contract.settings import Settings
from pipeline.domains import taxi

EARLY, NATIVE = "taxi-zone-sessions-early", "taxi-zone-sessions"
ALHAMBRA, ASTORIA = 4, 7
TEN_MINUTES = Settings(watermark="10 minutes")


def trip(dropoff, zone=ASTORIA, partition=0, **fields):
    moment = at(dropoff) if isinstance(dropoff, str) else dropoff
    value = {"lpep_dropoff_datetime": round(moment.timestamp() * 1000), "PULocationID": zone, "fare_amount": 10.0, **fields}
    return Record(value, partition, timestamp=at("18:00"))


def told(rows):
    """Start and end of each session, and how many trips it has; "gone" for a tombstone."""
    return [(row["window"]["start"][11:19], row["window"]["end"][11:19], row["trips"]) if row else "gone" for row in rows]


@pytest.fixture
def start(stream):
    """Starts a query of the domain by name."""
    by_name = {query.name: query for query in taxi.queries(Settings())}
    return lambda name, **options: stream(by_name[name], settings=TEN_MINUTES, **options)


@pytest.fixture
def zones(start):
    return start(EARLY)


def test_a_session_is_told_with_its_first_trip_and_again_when_it_grows(zones):
    first, second, other = zones.run([trip("10:00")], [trip("10:05"), trip("10:10:01")], [trip("10:11", ALHAMBRA)])
    assert told(first.rows) == [("10:00:00", "10:05:00", 1)]
    assert told(second.rows) == [("10:00:00", "10:10:00", 2), ("10:10:01", "10:15:01", 1)], "five minutes continue a session, more do not"
    assert told(other.rows) == [("10:11:00", "10:16:00", 1)], "what has not changed is not written"


def test_a_trip_between_two_sessions_makes_them_one_and_leaves_a_tombstone(zones):
    _, joined = zones.run([trip("10:00"), trip("10:08")], [trip("10:04")])
    assert told(joined.rows) == [("10:00:00", "10:13:00", 3), "gone"]
    assert told(zones.table) == [("10:00:00", "10:13:00", 3)]


def test_an_earlier_first_trip_moves_the_row_to_another_key(zones):
    zones.run([trip("10:04")], [trip("10:01")])
    assert told(zones.table) == [("10:01:00", "10:09:00", 2)]


def test_a_timer_removes_a_session_that_no_trip_can_join_and_its_row_stays(zones):
    *open_still, over = zones.run([trip("10:00")], [trip("10:15")], [trip("10:16", ALHAMBRA)], [trip("10:40", ALHAMBRA)])
    assert [batch.timers for batch in open_still] == [1, 1, 2]
    assert over.timers == 1, "Astoria has neither a state nor a timer"
    assert told(over.rows) == [("10:40:00", "10:45:00", 1)]
    assert told(zones.table) == [
        ("10:00:00", "10:05:00", 1),
        ("10:15:00", "10:20:00", 1),
        ("10:16:00", "10:21:00", 1),
        ("10:40:00", "10:45:00", 1),
    ]


def test_a_late_trip_changes_nothing_and_one_that_is_repeated_counts_once(zones):
    _, late, repeated = zones.run([trip("10:00"), trip("10:20")], [trip("10:04")], [trip("10:20")])
    assert (late.late, told(late.rows), told(repeated.rows)) == (1, [], [])


def test_a_batch_with_a_tombstone_that_runs_again_after_a_kill_writes_the_same_rows(zones):
    _, joined = zones.run([trip("10:00"), trip("10:08")], [trip("10:04")])
    zones.lose_last_commit()
    again, after = zones.run([trip("10:09")])
    assert again == joined
    assert told(after.rows) == [("10:00:00", "10:14:00", 4)]


def trips_in_order_of_arrival():
    """(zone, seconds after ten) of three zones in two hours, up to nine minutes late, some of them twice."""
    chance = random.Random(7)
    trips = [(chance.choice([ALHAMBRA, ASTORIA, None]), chance.randrange(0, 7200, 10)) for _ in range(120)]
    return sorted([*trips, *trips[:10]], key=lambda one: one[1] + chance.randrange(540))


def test_it_comes_to_the_rows_of_the_native_sessions_and_of_the_model_in_whatever_order_trips_come(start):
    arrived = trips_in_order_of_arrival()
    sent = [
        trip(
            at("10:00") + timedelta(seconds=second),
            zone,
            number % 2,
            fare_amount=round(second / 100, 2),
            total_amount=None if second % 3 else 1.5,
        )
        for number, (zone, second) in enumerate(arrived)
    ]
    tables = []
    for name in (EARLY, NATIVE):
        query = start(name, partitions=2)
        batches = query.run(*(sent[first : first + 26] for first in range(0, 130, 26)), [trip("15:00", 1), trip("15:00", 1, 1)])
        assert sum(batch.late for batch in batches) == 0
        tables.append([{**row, "started": row["window"]["start"]} for row in query.table if row["zone_id"] != 1])
    early, native = (sorted(table, key=lambda row: (row["zone_id"], row["started"])) for table in tables)
    assert early == native
    for zone in (ALHAMBRA, ASTORIA):
        model = sessions_of({second for of, second in arrived if of == zone}, 300)
        assert told(row for row in early if row["zone_id"] == zone) == [
            (f"{at('10:00') + timedelta(seconds=first):%H:%M:%S}", f"{at('10:00') + timedelta(seconds=last + 300):%H:%M:%S}", number)
            for first, last, number in model
        ]
