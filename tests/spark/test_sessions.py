"""Session windows as streams: which gap ends a session, what joins two, and when a session is final."""

import json

import pytest
from avro import V1, change, in_wire_format, nullable
from streaming import Record, Stream, at

from infrastructure.settings import Settings
from pipeline.domains import taxi, wikimedia
from pipeline.formats.confluent_avro import WriterSchemas

ALHAMBRA, ASTORIA = 4, 7
GAP, JOINED, REPEATED, LATE = 10, 18, 20, 31
"""More zones."""
ZONE_SESSIONS = next(query for query in taxi.queries(Settings()) if query.name == "taxi-zone-sessions")


def trip(dropoff, zone=ASTORIA, **fields):
    value = {"lpep_dropoff_datetime": round(at(dropoff).timestamp() * 1000), "PULocationID": zone, "fare_amount": 10.0, **fields}
    return Record(value, timestamp=at("18:00"))


def told(rows, name):
    """Start and end of each session, and how many events it has."""
    return [(row["window"]["start"][11:19], row["window"]["end"][11:19], row[name]) for row in rows]


@pytest.fixture(scope="module")
def batches(spark, tmp_path_factory):
    """What became of four batches of several zones. The last one makes the sessions of all others final."""
    return Stream(spark, ZONE_SESSIONS, tmp_path_factory.mktemp("zones")).run(
        [
            *(trip(time, GAP) for time in ("10:00", "10:05", "10:10:01")),
            *(trip(time, JOINED) for time in ("10:00", "10:08")),
            *(trip("10:05", REPEATED) for _ in range(2)),
            trip("10:00", ALHAMBRA),
            trip("10:01"),
            trip("10:02", fare_amount=0.5),
            trip("10:03", None),
        ],
        [trip("10:04", JOINED), trip("10:05", REPEATED), trip("10:20", LATE)],
        [trip("10:04", LATE)],
        [trip("12:00")],
    )


@pytest.fixture
def final(batches):
    """The sessions of a zone that became final, and when: by batch, those in which nothing of it became final left out."""
    return lambda zone: {
        number: told(rows, "trips")
        for number, batch in enumerate(batches)
        if (rows := [row for row in batch.rows if row["zone_id"] == zone])
    }


def test_a_gap_of_exactly_five_minutes_continues_a_session_and_a_longer_one_ends_it(batches, final):
    assert batches[0].rows == [], "a session is written when it is final"
    assert final(GAP) == {1: [("10:00:00", "10:10:00", 2)], 3: [("10:10:01", "10:15:01", 1)]}


def test_a_trip_between_two_sessions_makes_them_one(final):
    assert final(JOINED) == {3: [("10:00:00", "10:13:00", 3)]}


def test_zones_have_sessions_of_their_own_with_names_and_sums(batches):
    rows = [row for batch in batches for row in batch.rows]
    window = {"start": "2026-01-01T10:01:00Z", "end": "2026-01-01T10:07:00Z"}
    astoria = {"zone_id": ASTORIA, "borough": "Queens", "zone": "Astoria", "window": window, "trips": 2}
    assert {**astoria, "fare_amount_sum": 10.5, "total_amount_sum": None} in rows
    boroughs = {row["zone_id"]: (row["borough"], row["trips"]) for row in rows}
    assert (boroughs[ALHAMBRA], boroughs[ASTORIA], boroughs[264]) == (("Manhattan", 1), ("Queens", 2), ("Unknown", 1))


def test_a_trip_that_is_repeated_counts_once_and_does_not_prolong_a_session(final):
    assert final(REPEATED) == {1: [("10:05:00", "10:10:00", 1)]}


def test_a_late_trip_changes_no_session(batches, final):
    assert [batch.dropped for batch in batches] == [0, 0, 1, 0]
    assert final(LATE) == {3: [("10:20:00", "10:25:00", 1)]}


def test_a_batch_gives_the_sessions_that_the_stream_gives(stream, records):
    zones = stream(ZONE_SESSIONS)
    trips = [trip(f"10:{minute:02}", zone) for minute in (0, 5, 11, 12, 17, 30) for zone in (ALHAMBRA, ASTORIA)]
    zones.run(trips[:3], trips[3:8], trips[8:], [trip("12:00")])
    values = [json.dumps(one.value).encode() for one in trips]
    received = records(*values, topic="nyc-taxi")
    expected = {
        (row.zone_id, row.window.start.minute, row.window.end.minute, row.trips)
        for row in ZONE_SESSIONS.transformed(ZONE_SESSIONS.decoded(received), Settings()).collect()
    }
    found = {(row["zone_id"], int(row["window"]["start"][14:16]), int(row["window"]["end"][14:16]), row["trips"]) for row in zones.table}
    assert found == expected
    assert len(found) == 6


def test_an_editor_has_sessions_across_wikis_and_hidden_editors_are_one(stream):
    written = nullable("user")

    def edit(number, time, user, **fields):
        return in_wire_format(change(number, at=round(at(time).timestamp()), user=user, **fields), 3, written)

    by_name = {query.name: query for query in wikimedia.queries(Settings())}
    editors = stream(by_name["wikimedia-editor-sessions"], schemas=WriterSchemas(V1, {3: written}))
    first = [
        edit(1, "10:00", "Ada", wiki="enwiki"),
        edit(2, "10:03", "Ada", wiki="dewiki"),
        edit(3, "10:02", "Grace"),
        edit(6, "10:01", None),
    ]
    *_, last = editors.run(first, [edit(4, "10:02:30", "Ada")], [edit(5, "12:00", "Ada")])
    sessions = {row["user"]: told([row], "edits") for row in last.rows}
    assert sessions == {"Ada": [("10:00:00", "10:08:00", 3)], "Grace": [("10:02:00", "10:07:00", 1)], "": [("10:01:00", "10:06:00", 1)]}
