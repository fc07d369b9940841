"""Lab 10: state and timers. Read workshop/10-state/README.md."""

from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, StatefulProcessorHandle, TimerValues

SILENCE_MS = 10 * 60_000
FORGET_MS = 60 * 60_000
ONLINE, SILENT, FORGOTTEN = "online", "silent", "forgotten"


class Camera(NamedTuple):
    """The state of a camera. seen_ms: the newest time at which it was heard, in ms since 1970."""

    seen_ms: int
    is_silent: bool = False


def heard(camera: Camera | None, times_ms: list[int]) -> tuple[Camera, str | None]:
    """Takes the times at which a batch heard the camera, in any order.

    camera: None if it is new or was forgotten. Returns the camera, and its change: ONLINE if it is new or was silent, else None.
    """
    msg = "return the camera with its newest time, and ONLINE if it is new or was silent"
    raise NotImplementedError(msg)


def next_timer_ms(camera: Camera) -> int:
    """The time at which the camera changes next, if it is not heard again: SILENCE_MS or FORGET_MS after it was heard."""
    msg = "return the time, in ms since 1970, at which the camera changes next"
    raise NotImplementedError(msg)


def expired(camera: Camera, timer_ms: int) -> tuple[Camera | None, str | None]:
    """The watermark has reached the timer `timer_ms`. The camera may have been heard since the timer was set.

    Returns the camera, None to delete its state, and its change: SILENT, FORGOTTEN or None.
    """
    msg = "return what the timer makes of the camera, and the change"
    raise NotImplementedError(msg)


# From here on nothing is missing. Read how Spark calls your functions, one camera at a time.


class Cameras(StatefulProcessor):
    """Reads the state of a camera, calls a function, writes the state and sets a timer. A timer that is set stays set."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle, self._state = handle, handle.getValueState("camera", "seen_ms bigint, is_silent boolean")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        camera, change = heard(self._read(), [row.at_ms for row in rows])
        return self._write(key, camera, change)

    def handleExpiredTimer(self, key: tuple[str], timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo) -> Iterator[Row]:
        camera, change = expired(self._read(), expiredTimerInfo.getExpiryTimeInMs())
        return self._write(key, camera, change)

    def close(self) -> None:
        pass

    def _read(self) -> Camera | None:
        value = self._state.get()
        return None if value is None else Camera(*value)

    def _write(self, key: tuple[str], camera: Camera | None, change: str | None) -> Iterator[Row]:
        if camera is None:
            self._state.clear()
        else:
            self._state.update(tuple(camera))
            self._handle.registerTimer(next_timer_ms(camera))
        return iter([] if change is None else [Row(device_id=key[0], state=change)])


def camera_changes(reports: DataFrame) -> DataFrame:
    """The changes of each camera. reports: device_id, at (a stream with a watermark on it). Returns device_id, state."""
    rows = reports.select("device_id", "at", F.unix_millis("at").alias("at_ms"))
    return rows.groupBy("device_id").transformWithState(Cameras(), "device_id string, state string", "Update", "EventTime")
