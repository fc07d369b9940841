"""The activity of cameras as a stream: since when they see people, at once, and a tombstone when they have seen nobody for long."""

import random
from datetime import timedelta

import pytest
from streaming import at

from contract.settings import Settings
from pipeline.domains import nest

TEN_MINUTES = Settings(watermark="10 minutes")


def seen(time, camera="cam-1"):
    moment = at(time) if isinstance(time, str) else time
    event = {"has_person": True, "start_time": moment.isoformat(timespec="milliseconds")}
    return {"devices": {"cameras": {camera: {"last_event": event}}}}


def told(rows):
    return [
        (row["device_id"], row["first_activity"][11:19], row["last_activity"][11:19], row["sightings"]) if row else "gone" for row in rows
    ]


@pytest.fixture
def query(settings_of):
    (query,) = (one for one in nest.queries(settings_of(STREAMGAUGE_INACTIVE_AFTER="1 hour")) if one.name == "nest-camera-activity")
    return query


@pytest.fixture
def cameras(stream, query):
    return stream(query, settings=TEN_MINUTES)


def test_activity_begins_with_the_first_sighting_and_goes_on_with_each_within_the_time_out(cameras):
    first, second, third = cameras.run([seen("10:00")], [seen("10:05"), seen("10:05")], [seen("11:05"), seen("12:05:01")])
    assert told(first.rows) == [("cam-1", "10:00:00", "10:00:00", 1)]
    assert told(second.rows) == [("cam-1", "10:00:00", "10:05:00", 2)]
    assert told(third.rows) == [("cam-1", "12:05:01", "12:05:01", 1)], "an hour goes on, more begins anew"


def test_an_earlier_sighting_that_joins_an_older_activity_moves_the_beginning_back(cameras):
    _, older, joined = cameras.run([seen("10:00"), seen("11:20")], [seen("11:15"), seen("11:12")], [seen("11:11")])
    assert told(older.rows) == [("cam-1", "11:12:00", "11:20:00", 3)]
    assert told(joined.rows) == [("cam-1", "11:11:00", "11:20:00", 4)]


def test_a_camera_that_sees_nobody_for_long_is_gone_and_begins_anew(cameras):
    _, on_time, over, again = cameras.run([seen("10:00")], [seen("11:10", "cam-2")], [seen("11:10:01", "cam-2")], [seen("11:30")])
    assert told(on_time.rows) == [("cam-2", "11:10:00", "11:10:00", 1)], "an hour is not longer than an hour"
    assert told(over.rows) == [("cam-2", "11:10:00", "11:10:01", 2), "gone"]
    assert told(again.rows) == [("cam-1", "11:30:00", "11:30:00", 1)]
    assert [batch.timers for batch in (on_time, over, again)] == [2, 1, 2], "one for each camera that is active"


def test_the_recount_of_verify_gives_the_table_of_the_stream(cameras, query, spark):
    chance = random.Random(7)
    sightings = [(f"cam-{chance.randrange(12)}", at("00:00") + timedelta(seconds=chance.randrange(86_000))) for _ in range(150)]
    sightings = sorted([*sightings, *sightings[:9]], key=lambda one: one[1] + timedelta(seconds=chance.randrange(540)))
    batches = cameras.run(*([seen(time, camera) for camera, time in sightings[first : first + 40]] for first in range(0, 159, 40)))
    assert sum(batch.late for batch in batches) == 0
    rows = spark.createDataFrame(sightings, "device_id string, start_time timestamp")
    until_ms = round(batches[-1].watermark.timestamp() * 1000)
    recounted = query.transformed(rows, until_ms).selectExpr("device_id", "string(first_activity)", "string(last_activity)", "sightings")
    expected = sorted((row[0], row[1][11:], row[2][11:], row[3]) for row in recounted.collect())
    assert told(cameras.table) == expected
    assert 0 < len(expected) < 12, "some cameras are active, some no longer"
