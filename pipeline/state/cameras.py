"""Which cameras are offline: a stateful processor over `offline.advance`, and the rows made from its changes."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, StatefulProcessorHandle, TimerValues

from pipeline.sources.static_tables import UNKNOWN
from pipeline.state.offline import OFFLINE, ONLINE, Camera, Change, Limits, Report, Status, advance, next_change_ms

_REPORT = "at_ms bigint, is_online boolean, sighting_ms bigint"
_STATUS = (
    "is_online boolean, is_silent boolean, since_ms bigint, seen_ms bigint, sighting_ms bigint, incident_ms bigint, gone_ms array<bigint>, "
    "first_ms bigint"
)
_CAMERA = f"status struct<{_STATUS}>, waiting array<struct<{_REPORT}>>, timer_ms bigint"
CHANGES = (
    "device_id string, is_online boolean, is_silent boolean, since_ms bigint, seen_ms bigint, sighting_ms bigint, alert string, "
    "incident_ms bigint, first_ms bigint"
)
"""The columns of a change: those of Status, and its alert."""


class OfflineCameras(StatefulProcessor):
    """Handles Spark's calls, one camera at a time: reads one value, writes one, and sets a timer for the next change.

    A document does not postpone the timer: it fires at the old time, finds that nothing has changed, and is set again. So a document
    costs no timer.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle, self._state = handle, handle.getValueState("camera", _CAMERA)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: ANN401, N802, N803
        """Takes the documents of one batch, in any order."""
        camera = self._read()
        waiting = camera.waiting.union(Report(row.at_ms, row.is_online, row.sighting_ms) for row in rows)
        return self._advanced(key[0], camera._replace(waiting=waiting), timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:  # noqa: ANN401, N802, N803
        """Is called after the documents of the batch, when the watermark has reached the timer."""
        camera = self._read()
        if camera.timer_ms == expiredTimerInfo.getExpiryTimeInMs():
            camera = camera._replace(timer_ms=None)
        return self._advanced(key[0], camera, timerValues.getCurrentWatermarkInMs())

    def _advanced(self, device_id: str, camera: Camera, watermark_ms: int) -> Iterator[Row]:
        camera, changes = advance(camera, watermark_ms, self._limits)
        next_ms = next_change_ms(camera, self._limits)
        if next_ms is not None and (camera.timer_ms is None or next_ms < camera.timer_ms):
            if camera.timer_ms is not None:  # a camera is back long before it would be forgotten
                self._handle.deleteTimer(camera.timer_ms)
            self._handle.registerTimer(next_ms)
            camera = camera._replace(timer_ms=next_ms)
        if camera.status is None and not camera.waiting:
            self._state.clear()
        else:
            # Spark takes plain tuples and lists only.
            status = camera.status
            stored = None if status is None else (*status[:-2], list(status.gone_ms), status.first_ms)
            self._state.update((stored, [tuple(report) for report in camera.waiting], camera.timer_ms))
        return (Row(**_row(device_id, change)) for change in changes)

    def _read(self) -> Camera:
        value = self._state.get()
        if value is None:
            return Camera()
        stored, waiting, timer_ms = value
        status = None if stored is None else Status(*stored)
        return Camera(status and status._replace(gone_ms=tuple(status.gone_ms)), frozenset(Report(*report) for report in waiting), timer_ms)


def _row(device_id: str, change: Change) -> dict[str, Any]:
    status = change.status._asdict() if change.status is not None else dict.fromkeys(Status._fields)
    del status["gone_ms"]
    return {"device_id": device_id, **status, "alert": change.alert}


def camera_status(reports: DataFrame, locations: DataFrame, *, limits: Limits) -> DataFrame:
    """Each camera when it is first heard of, when it goes offline, when it is back, and when it is forgotten.

    reports: device_id, at (timestamp; of a stream, with a watermark), is_online, sighting (timestamp or null).
    locations: device_id, zip_code; unique by device_id.
    Returns device_id, zip_code, state (online, offline), reason (of being offline), since (for a silent camera: when it was last seen),
    last_seen, last_sighting, alert (offline, back, flapping; null: none), incident (when it went offline after it had been steady),
    first_seen (since it was forgotten; null if a version without this column already knew it). Of a camera that is forgotten, all but
    device_id are null.
    """
    sighting_ms = F.unix_millis("sighting").alias("sighting_ms")
    by_camera = reports.select("device_id", "at", F.unix_millis("at").alias("at_ms"), "is_online", sighting_ms).groupBy("device_id")
    changes = by_camera.transformWithState(OfflineCameras(limits), CHANGES, "Update", "EventTime")
    is_known = F.col("is_online").isNotNull()
    return changes.join(F.broadcast(locations), "device_id", how="left").select(
        "device_id",
        F.when(is_known, F.coalesce("zip_code", F.lit(UNKNOWN))).alias("zip_code"),
        F.when(F.col("is_online"), ONLINE).when(is_known, OFFLINE).alias("state"),
        F.when(F.col("is_silent"), "silent").when(~F.col("is_online"), "is_online is false").alias("reason"),
        F.timestamp_millis("since_ms").alias("since"),
        F.timestamp_millis("seen_ms").alias("last_seen"),
        F.timestamp_millis("sighting_ms").alias("last_sighting"),
        "alert",
        F.timestamp_millis("incident_ms").alias("incident"),
        F.timestamp_millis("first_ms").alias("first_seen"),
    )
