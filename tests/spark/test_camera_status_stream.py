"""Offline cameras as a stream: Spark's batches, watermark and timers give what a replay in order of event time gives."""

import random
from collections import defaultdict
from datetime import datetime, timedelta

import orjson
import pytest
from plain import camera_changes
from streaming import Record, Stream, at

from infrastructure.settings import Settings
from pipeline.domains import nest

CAMERA_STATUS = next(query for query in nest.queries(Settings()) if query.name == "nest-camera-status")
TEN_MINUTES = Settings(watermark="10 minutes")


def heard(time, camera="cam-1", partition=0, **fields):
    """A document sent at `time`."""
    moment = at(time) if isinstance(time, str) else time
    return Record(orjson.dumps({"devices": {"cameras": {camera: fields}}}), partition, timestamp=moment)


def states(rows):
    """(camera, state, since) of each status, without the alerts."""
    return [(row["device_id"], row["state"], row["since"][11:16]) for row in rows if "last_seen" in row]


def alerts(rows):
    return [(row["device_id"], row["alert"], row["incident"][11:16]) for row in rows if row and "last_seen" not in row]


@pytest.fixture(scope="module")
def cameras(spark, tmp_path_factory):
    """A stream of three cameras, and its batches: the third one a second time, as after a kill, and then the fourth."""
    seen = {"has_person": True, "start_time": "2026-01-01T09:58:00.000Z"}
    stream = Stream(spark, CAMERA_STATUS, tmp_path_factory.mktemp("cameras"), settings=TEN_MINUTES)
    first_three = stream.run(
        [heard("10:00"), heard("10:05", "cam-2"), heard("10:00", "cam-3", last_event=seen), heard("10:02", "cam-3", is_online=False)],
        [heard("10:12", "cam-2"), heard("10:19:59", "cam-2")],
        [heard("10:20", "cam-2")],
    )
    stream.lose_last_commit()
    return stream, *first_three, *stream.run([heard("10:41"), heard("10:51")])


def test_a_camera_goes_offline_when_the_watermark_says_that_nothing_was_heard(cameras):
    _, first, quiet, offline, _, back = cameras
    assert states(first.rows) == [], "the watermark has not passed the first document yet"
    assert ("cam-1", "online", "10:00") in states(quiet.rows)
    assert states(offline.rows) == [("cam-1", "offline", "10:00")]
    assert alerts(offline.rows) == [("cam-1", "offline", "10:00")]
    assert states(back.rows) == [("cam-1", "online", "10:41"), ("cam-2", "offline", "10:20")]
    assert [batch.timers for batch in (first, quiet, offline, back)] == [3, 3, 3, 3], "one for each camera"


def test_what_a_camera_says_of_itself_and_its_newest_sighting(cameras):
    stream, *_ = cameras
    assert [row for row in stream.table if "last_seen" in row and row["device_id"] == "cam-3"] == [
        {
            "device_id": "cam-3",
            "zip_code": "unknown",
            "state": "offline",
            "reason": "is_online is false",
            "since": "2026-01-01T10:02:00Z",
            "last_seen": "2026-01-01T10:02:00Z",
            "last_sighting": "2026-01-01T09:58:00Z",
            "alert": "offline",
            "incident": "2026-01-01T10:02:00Z",
            "first_seen": "2026-01-01T10:00:00Z",
        }
    ]


def test_a_camera_that_is_not_heard_of_for_long_leaves_a_tombstone(stream, settings_of):
    (query,) = (one for one in nest.queries(settings_of(STREAMGAUGE_RESULT_RETENTION="1 hour")) if one.name == CAMERA_STATUS.name)
    cameras = stream(query, settings=TEN_MINUTES)
    _, forgotten, again = cameras.run([heard("10:00")], [heard("11:10", "cam-2")], [heard("11:20"), heard("11:30", "cam-2")])
    assert {} in forgotten.rows
    assert ("cam-1", "online", "11:20") in states(again.rows)


def test_a_batch_with_due_timers_that_runs_again_after_a_kill_writes_the_same_rows(cameras):
    _, _, _, offline, again, _ = cameras
    assert alerts(offline.rows) != []
    assert again == offline


def documents_in_order_of_arrival():
    """(camera, ms after ten, is online) of twenty cameras that are heard, fall silent, say that they are offline and flap, up to nine minutes late."""
    chance = random.Random(7)
    documents = [(f"cam-{number % 20}", 1000 * chance.randrange(7200), chance.random() > 0.3) for number in range(400)]
    return sorted(documents, key=lambda document: document[1] + 1000 * chance.randrange(540))


def expected_changes(until):
    """(camera, state, since) of each change up to the watermark `until`, by the model."""
    until_ms, by_camera = (until - at("10:00")) // timedelta(milliseconds=1), defaultdict(list)
    for camera, *document in documents_in_order_of_arrival():
        by_camera[camera].append(tuple(document))
    return {
        camera: [("online" if is_online else "offline", at("10:00") + timedelta(milliseconds=since)) for is_online, since in changes]
        for camera, documents in by_camera.items()
        if (changes := camera_changes(documents, until_ms, silence_ms=600_000))
    }


def test_the_stream_gives_what_the_model_gives_in_whatever_order_documents_come(stream):
    sent = [
        heard(at("10:00") + timedelta(milliseconds=time_ms), camera, number % 2, is_online=is_online)
        for number, (camera, time_ms, is_online) in enumerate(documents_in_order_of_arrival())
    ]
    batches = stream(CAMERA_STATUS, settings=TEN_MINUTES, partitions=2).run(*(sent[start : start + 200] for start in range(0, 400, 200)))
    assert sum(batch.dropped for batch in batches) == 0
    found = defaultdict(list)
    for row in [row for batch in batches for row in batch.rows if "last_seen" in row]:
        found[row["device_id"]].append((row["state"], datetime.fromisoformat(row["since"])))
    assert found == expected_changes(batches[-1].watermark)
