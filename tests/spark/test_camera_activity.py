"""The activity of cameras as a stream: since when they see people, at once, and a tombstone when they have seen nobody for long."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from plain import sessions_of
from streaming import Stream, at

from infrastructure.settings import Settings
from pipeline.domains import nest

TEN_MINUTES = Settings(watermark="10 minutes")


def seen(time, camera="cam-1"):
    moment = at(time) if isinstance(time, str) else time
    event = {"has_person": True, "start_time": moment.isoformat(timespec="milliseconds")}
    return {"devices": {"cameras": {camera: {"last_event": event}}}}


def told(rows, *cameras):
    """Camera, since when and until when it sees people, and how often. cameras: only these; then tombstones, which name none, are left out."""
    rows = [row for row in rows if not cameras or (row and row["device_id"] in cameras)]
    return [
        (row["device_id"], row["first_activity"][11:19], row["last_activity"][11:19], row["sightings"]) if row else "gone" for row in rows
    ]


@pytest.fixture(scope="module")
def query():
    (query,) = (one for one in nest.queries(replace(TEN_MINUTES, inactive_after="1 hour")) if one.name == "nest-camera-activity")
    return query


@pytest.fixture(scope="module")
def batches(spark, query, tmp_path_factory):
    """What became of five batches of three cameras."""
    return Stream(spark, query, tmp_path_factory.mktemp("cameras"), settings=TEN_MINUTES).run(
        [seen("11:00"), seen("10:00", "cam-2"), seen("11:20", "cam-2")],
        [seen("11:15"), seen("11:15"), seen("11:15", "cam-2"), seen("11:12", "cam-2")],
        [seen("12:15"), seen("11:11", "cam-2"), seen("12:30", "cam-3")],
        [seen("13:15:01")],
        [seen("13:20", "cam-2")],
    )


def test_activity_begins_with_the_first_sighting_and_goes_on_with_each_within_the_time_out(batches):
    assert [told(batch.rows, "cam-1") for batch in batches[:4]] == [
        [("cam-1", "11:00:00", "11:00:00", 1)],
        [("cam-1", "11:00:00", "11:15:00", 2)],
        [("cam-1", "11:00:00", "12:15:00", 3)],
        [("cam-1", "13:15:01", "13:15:01", 1)],
    ], "an hour goes on, more begins anew"


def test_an_earlier_sighting_that_joins_the_activity_moves_its_beginning_back(batches):
    assert [told(batch.rows, "cam-2") for batch in batches[:3]] == [
        [("cam-2", "11:20:00", "11:20:00", 1)],
        [("cam-2", "11:12:00", "11:20:00", 3)],
        [("cam-2", "11:11:00", "11:20:00", 4)],
    ]


def test_a_camera_that_sees_nobody_for_long_is_gone_and_begins_anew(batches):
    *_, on_time, over, again = batches
    assert on_time.watermark == at("12:20")
    assert "gone" not in told(on_time.rows), "an hour is not longer than an hour"
    assert told(over.rows) == [("cam-1", "13:15:01", "13:15:01", 1), "gone"]
    assert told(again.rows) == [("cam-2", "13:20:00", "13:20:00", 1)]
    assert [batch.timers for batch in (on_time, over, again)] == [3, 2, 3], "one for each camera that is active"


def test_the_stream_comes_to_the_table_of_the_model_in_whatever_order_sightings_come(stream, query):
    cameras = stream(query, settings=TEN_MINUTES)
    chance = random.Random(7)
    sightings = [(f"cam-{chance.randrange(12)}", at("00:00") + timedelta(seconds=chance.randrange(86_000))) for _ in range(150)]
    # The watermark comes to be ten minutes behind the newest sighting: this camera is silent for an hour by then, and no longer.
    sightings.append(("cam-12", max(time for _, time in sightings) - timedelta(minutes=70)))
    sightings = sorted([*sightings, *sightings[:9]], key=lambda one: one[1] + timedelta(seconds=chance.randrange(540)))
    batches = cameras.run(*([seen(time, camera) for camera, time in sightings[first : first + 80]] for first in range(0, 160, 80)))
    assert sum(batch.dropped for batch in batches) == 0
    by_camera = {camera: {time for of, time in sightings if of == camera} for camera, _ in sightings}
    newest = [(camera, *sessions_of(times, timedelta(hours=1))[-1]) for camera, times in by_camera.items()]
    active = [one for one in newest if one[2] + timedelta(hours=1) >= batches[-1].watermark]
    expected = sorted((camera, f"{first:%H:%M:%S}", f"{last:%H:%M:%S}", number) for camera, first, last, number in active)
    assert told(cameras.table) == expected
    assert "cam-12" in {row[0] for row in expected}
    assert 1 < len(expected) < 13, "some cameras are active, some no longer"
