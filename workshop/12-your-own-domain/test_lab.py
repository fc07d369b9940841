import json

import pytest
from text_tables import expect_rows, frame_of

from infrastructure.settings import Settings

TOPIC = "bike-trips"
TRIPS = """
offset  bike  station  ended_at             minutes
0       b-1   Harbour  2026-01-01 10:10:00  12
1       b-1   Harbour  2026-01-01 10:10:00  12
2       b-2   Harbour  2026-01-01 10:20:00  30
3       b-1   Station  2026-01-01 10:50:00  8
4       b-3   Station  2026-01-01 10:55:00  null
"""
STATS = """
station  window                                      trips  minutes
Harbour  {2026-01-01 10:00:00, 2026-01-01 11:00:00}  2      42
Station  {2026-01-01 10:00:00, 2026-01-01 11:00:00}  2      8
"""
REASONS = """
offset  reason
0       empty
1       not JSON
2       no bike
3       no station
4       no ended_at
5       minutes is negative
6       ended_at is in the future
"""


def trip(bike="b-1", station="Harbour", ended_at="2026-01-01T10:10:00Z", minutes=12):
    return json.dumps({"bike": bike, "station": station, "ended_at": ended_at, "minutes": minutes}).encode()


UNUSABLE = [
    None,
    b"not JSON",
    trip(bike=None),
    trip(station=None),
    trip(ended_at=None),
    trip(minutes=-1),
    trip(ended_at="2026-01-01T12:10:01Z"),  # past for the clock on the wall
]


@pytest.fixture
def query(lab):
    """The lab's query with a name."""

    def named(name):
        found = {query.name: query for query in lab.queries(Settings(watermark="10 minutes"))}
        assert name in found, f"came: queries {', '.join(found)}\nexpected: {name} among them"
        return found[name]

    return named


def told(batch):
    return [f"{row['station']} {row['window']['start'][11:16]} trips={row['trips']} minutes={row['minutes']}" for row in batch]


def test_a_record_that_can_be_used_is_a_row(lab, records):
    """`reason` is null for it. A trip that ends exactly ten minutes after the record's clock is not in the future yet, and minutes may be null."""
    values = trip(), trip(bike="b-2", ended_at="2026-01-01T12:10:00Z", minutes=None)
    expect_rows(
        lab.trips(records(*values), "10 minutes"),
        """
        topic       partition  offset  bike  station  ended_at             minutes
        bike-trips  0          0       b-1   Harbour  2026-01-01 10:10:00  12
        bike-trips  0          1       b-2   Harbour  2026-01-01 12:10:00  null
        """,
    )


def test_a_record_that_cannot_be_used_has_a_reason(lab, records):
    """F.coalesce takes the first reason that is not null. latest_event(future) is the latest time that an event may have: the clock of its record, plus `future`."""
    letters = lab.unusable(records(*UNUSABLE), "10 minutes")
    reason = "string(filter(headers, header -> header.key = 'reason')[0].value) AS reason"
    expect_rows(letters.selectExpr("get_json_object(key, '$.offset') AS offset", reason), REASONS)


def test_each_record_counts_or_is_a_dead_letter(lab, records):
    """Both call `reason`: a record is in one of them, and never in both."""
    values = records(*UNUSABLE, trip(), b"{}", b"[]", trip(minutes=None), b'{"bike": 5}')
    used = {row.offset for row in lab.trips(values, "10 minutes").collect()}
    dead = {int(json.loads(row.key)["offset"]) for row in lab.unusable(values, "10 minutes").collect()}
    assert used | dead == set(range(12)), f"came: {sorted(used | dead)}\nexpected: every offset from 0 to 11"
    assert not used & dead, f"came: offsets {sorted(used & dead)} in both\nexpected: none"


def test_trips_are_counted_once_per_station_and_hour(lab, spark):
    """A bike ends one trip at a time. A second report of a trip has another offset."""
    expect_rows(
        lab.station_stats(frame_of(spark, TRIPS, "offset bigint, bike string, station string, ended_at timestamp, minutes int")), STATS
    )


def test_the_query_writes_whole_rows_under_a_key_that_tells_them_apart(query, stream):
    """CompactedTopic takes the key's columns. In mode update, a row is written when it changes; in mode append, when its hour is closed."""
    counting = stream(query("bike-station-stats"), settings=Settings(watermark="1 day"))
    counting.run([trip()], [trip(), trip("b-2", minutes=3)], [trip("b-3", ended_at="2026-01-01T11:30:00Z")])
    came = told(counting.table)
    expected = ["Harbour 10:00 trips=2 minutes=15", "Harbour 11:00 trips=1 minutes=12"]
    assert came == expected, f"came:      {came}\nexpected:  {expected}"


def test_the_query_has_a_watermark(query, stream):
    """A query without `watermark` has none, and Spark remembers every trip forever."""
    counting = stream(query("bike-station-stats"), settings=Settings(watermark="10 minutes"))
    *_, last = counting.run([trip(ended_at="2026-01-01T11:30:00Z")], [trip(ended_at="2026-01-01T10:10:00Z")])
    assert last.dropped == 1, f"after trips that ended at 11:30 and then at 10:10\ncame:      {last.dropped} dropped\nexpected:  1"


def test_the_other_records_become_dead_letters(query, stream):
    """The second query has the sink DeadLetterTopic() and mode append."""
    (batch,) = stream(query("bike-dead-letters")).run([trip(), b"not JSON"])
    came = [json.loads(row["key"])["offset"] for row in batch.rows]
    assert came == [1], f"came:      dead letters of offsets {came}\nexpected:  [1]"
