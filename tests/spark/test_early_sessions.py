"""Sessions with early results as a stream: rows at once, tombstones for what is joined, and no state for what is over."""

import random
from datetime import timedelta

import orjson
import pytest
from plain import sessions_of
from streaming import Record, Stream, at

from infrastructure.settings import Settings
from pipeline.domains import taxi

BY_NAME = {query.name: query for query in taxi.queries(Settings())}
EARLY, NATIVE = BY_NAME["taxi-zone-sessions-early"], BY_NAME["taxi-zone-sessions"]
ALPHABET_CITY, ASTORIA, BAISLEY_PARK, BELMONT = 4, 7, 10, 20
TEN_MINUTES = Settings(watermark="10 minutes")


def trip(dropoff, zone=ASTORIA, partition=0, **fields):
    moment = at(dropoff) if isinstance(dropoff, str) else dropoff
    value = {"lpep_dropoff_datetime": round(moment.timestamp() * 1000), "PULocationID": zone, "fare_amount": 10.0, **fields}
    return Record(value, partition, timestamp=at("18:00"))


def told(rows, zone=ASTORIA):
    """Start and end of each session of a zone, and how many trips it has."""
    return [
        (row["window"]["start"][11:19], row["window"]["end"][11:19], row["trips"])
        for row in rows
        if row not in ({}, None) and row["zone_id"] == zone
    ]


@pytest.fixture(scope="module")
def zones(spark, tmp_path_factory):
    """A stream of four zones, and its batches: the second one twice, as after a kill. The last one closes all sessions but its own."""
    stream = Stream(spark, EARLY, tmp_path_factory.mktemp("zones"), settings=TEN_MINUTES)
    first_two = stream.run(
        [trip("10:00"), trip("10:00", ALPHABET_CITY), trip("10:08", ALPHABET_CITY), trip("10:04", BAISLEY_PARK)],
        [trip("10:05"), trip("10:10:01"), trip("10:04", ALPHABET_CITY), trip("10:01", BAISLEY_PARK)],
    )
    stream.lose_last_commit()
    return stream, *first_two, *stream.run([trip("10:00", BELMONT), trip("10:05"), trip("10:11", BELMONT)], [trip("10:40", BELMONT)])


def test_a_session_is_written_with_its_first_trip_and_again_when_it_grows(zones):
    _, first, second, _, third, _ = zones
    assert told(first.rows) == [("10:00:00", "10:05:00", 1)]
    assert told(second.rows) == [("10:00:00", "10:10:00", 2), ("10:10:01", "10:15:01", 1)], "five minutes continue a session, more do not"
    assert told(third.rows, BELMONT) == [("10:11:00", "10:16:00", 1)]


def test_a_late_trip_changes_nothing_and_one_that_is_repeated_counts_once(zones):
    *_, third, _ = zones
    assert third.dropped == 1
    assert told(third.rows, BELMONT) == [("10:11:00", "10:16:00", 1)], "10:00 is too late"
    assert told(third.rows) == [], "10:05 has been counted, and what has not changed is not written"


def test_a_trip_between_two_sessions_makes_them_one_and_leaves_a_tombstone(zones):
    stream, _, second, *_ = zones
    assert told(second.rows, ALPHABET_CITY) == told(stream.table, ALPHABET_CITY) == [("10:00:00", "10:13:00", 3)]
    assert second.rows.count({}) == 2, "one for the joined session of 10:08, one for the session that began at 10:04"


def test_an_earlier_first_trip_moves_the_row_to_another_key(zones):
    stream, *_ = zones
    assert told(stream.table, BAISLEY_PARK) == [("10:01:00", "10:09:00", 2)]


def test_a_timer_removes_a_session_that_no_trip_can_join_and_its_row_stays(zones):
    stream, *_, third, last = zones
    assert (third.timers, last.timers) == (4, 1), "one for each zone with an open session"
    assert [row["zone_id"] for row in last.rows] == [BELMONT]
    assert told(stream.table) == [("10:00:00", "10:10:00", 2), ("10:10:01", "10:15:01", 1)]


def test_a_batch_with_a_tombstone_that_runs_again_after_a_kill_writes_the_same_rows(zones):
    _, _, second, again, *_ = zones
    assert {} in second.rows
    assert again == second


def trips_in_order_of_arrival():
    """(zone, seconds after ten) of three zones in two hours, up to nine minutes late, some of them twice."""
    chance = random.Random(7)
    trips = [(chance.choice([ALPHABET_CITY, ASTORIA, None]), chance.randrange(0, 7200, 10)) for _ in range(120)]
    return sorted([*trips, *trips[:10]], key=lambda one: one[1] + chance.randrange(540))


def test_it_comes_to_the_rows_of_the_native_sessions_and_of_the_model_in_whatever_order_trips_come(stream, records):
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
    early = stream(EARLY, settings=TEN_MINUTES, partitions=2)
    assert sum(batch.dropped for batch in early.run(sent[:45], sent[45:90], sent[90:])) == 0
    trips = NATIVE.decoded(records(*(orjson.dumps(one.value) for one in sent), topic="nyc-taxi"))
    native = NATIVE.sink.records(NATIVE.transformed(trips, Settings()))
    in_order = {"key": lambda row: (row["zone_id"], row["window"]["start"])}
    expected = [{**row, "started": row["window"]["start"]} for row in (orjson.loads(one.value) for one in native.collect())]
    assert sorted(early.table, **in_order) == sorted(expected, **in_order)
    for zone in (ALPHABET_CITY, ASTORIA):
        model = sessions_of({second for of, second in arrived if of == zone}, 300)
        assert sorted(told(early.table, zone)) == [
            (f"{at('10:00') + timedelta(seconds=first):%H:%M:%S}", f"{at('10:00') + timedelta(seconds=last + 300):%H:%M:%S}", number)
            for first, last, number in model
        ]
