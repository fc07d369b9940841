"""What may change in the state of a processor that goes on from its checkpoint, on `nest-camera-status`: docs/upgrades.md."""

import orjson
import pytest
from pyspark.errors import StreamingQueryException
from streaming import Record, at

from infrastructure.settings import Settings
from pipeline.domains import nest
from pipeline.monitoring.failures import Remedy, diagnosis
from pipeline.spark.session import TIMER_STATE
from pipeline.state import cameras

CAMERA_STATUS = next(query for query in nest.queries(Settings()) if query.name == "nest-camera-status")
ENCODING = "spark.sql.streaming.stateStore.encodingFormat"


def heard(camera, time, **fields):
    return Record(orjson.dumps({"devices": {"cameras": {camera: fields}}}), timestamp=at(time))


def first_seen(rows):
    """By camera that is offline, when it was first seen."""
    return {camera: row["first_seen"] and row["first_seen"][11:16] for camera, row in statuses(rows).items() if row["state"] == "offline"}


def statuses(rows):
    """The last status of each camera."""
    return {row["device_id"]: row for row in rows if "first_seen" in row}  # the others are alerts


def storing(fields, stored, read):
    """OfflineCameras with another state. stored: its value as tuple, from that of today. read: the other way round."""

    class Stored:
        def __init__(self, state):
            self._state = state

        def get(self):
            value = self._state.get()
            return value and read(value)

        def update(self, value):
            self._state.update(stored(value))

        def clear(self):
            self._state.clear()

    class OtherState(cameras.OfflineCameras):
        def init(self, handle):
            self._handle, self._state = handle, Stored(handle.getValueState("camera", fields))

    return OtherState


WITHOUT_FIRST_SEEN = storing(
    cameras._CAMERA.replace(", first_ms bigint", ""),
    stored=lambda value: (value[0] and value[0][:-1], *value[1:]),
    read=lambda value: (value[0] and (*value[0], None), *value[1:]),
)
WITH_A_TEXT_AS_TIMER = storing(
    cameras._CAMERA.replace("timer_ms bigint", "timer_ms string"),
    stored=lambda value: (*value[:-1], str(value[-1])),
    read=lambda value: (*value[:-1], int(value[-1])),
)
WITH_ANOTHER_NAME = storing(cameras._CAMERA.replace("sighting_ms", "person_ms"), stored=lambda value: value, read=lambda value: value)


@pytest.fixture
def watching(stream):
    """A new checkpoint of the query, without records."""
    return stream(CAMERA_STATUS, settings=Settings(watermark="10 minutes"))


def test_a_field_with_another_name_is_not_detected_and_its_old_values_are_gone(watching, monkeypatch):
    seen = {"has_person": True, "start_time": "2026-01-01T09:58:00.000Z"}
    _, online = watching.run([heard("cam", "10:00", last_event=seen), heard("cam", "10:01")], [heard("cam", "10:12")])
    monkeypatch.setattr(cameras, "OfflineCameras", WITH_ANOTHER_NAME)
    watching.run([heard("other", "10:40")])
    assert statuses(online.rows)["cam"]["last_sighting"] == "2026-01-01T09:58:00Z"
    assert statuses(watching.table)["cam"]["last_sighting"] is None


def refusal_of(run):
    with pytest.raises(StreamingQueryException) as refused:
        run()
    told = diagnosis(str(refused.value), CAMERA_STATUS.checkpoint_name.place(Settings()), Settings())
    assert told.remedy is Remedy.PERSON
    return told.cause


def test_a_field_of_another_type_is_refused_with_the_two_ways_out_and_one_that_is_new_is_null(watching, monkeypatch):
    with monkeypatch.context() as other:
        other.setattr(cameras, "OfflineCameras", WITHOUT_FIRST_SEEN)
        watching.run([heard("old", "10:00")], [heard("old", "10:11")])
        other.setattr(cameras, "OfflineCameras", WITH_A_TEXT_AS_TIMER)
        refusal = refusal_of(lambda: watching.run([heard("new", "10:12")]))
    assert refusal.startswith("the query has changed, and the state in ")
    assert "raise its version" in refusal
    assert "streamgauge reset nest-camera-status" in refusal
    *_, last = watching.run([heard("other", "11:00")])
    assert first_seen(last.rows) == {"old": None, "new": "10:12"}


def test_a_checkpoint_keeps_its_encoding_and_in_that_of_spark_no_field_can_be_added(watching, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(cameras, "OfflineCameras", WITHOUT_FIRST_SEEN)
        before.setitem(TIMER_STATE, ENCODING, "unsaferow")
        watching.run([heard("old", "10:00")])
        before.setitem(TIMER_STATE, ENCODING, "avro")
        watching.run([heard("old", "10:11")])
    assert "raise its version" in refusal_of(lambda: watching.run([heard("old", "10:12")]))
