"""What a person should know, by the rows of result topics. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from infrastructure.rows import Row, decode_json
from infrastructure.text import utc_text
from pipeline.state.offline import FLAPPING_MS

STATUS, CROWDS, ALARMS = "nest-camera-status", "nest-crowds", "nest-alarms"
AN_HOUR = timedelta(hours=1)
STEADY = timedelta(milliseconds=FLAPPING_MS)
_OF_ALARM = ("alarm", "device_id", "structure_id")
_OF_CAMERA = {"offline": "is offline", "flapping": "goes offline again and again", "back": "is back"}


Level = Literal["warning", "error", "resolved"]


class Incident(NamedTuple):
    """Something that a person should know, which lasts or is over. name: unique. query: the query that found it. what: one line.

    level: "resolved" when it is over; None if that is not known, as of a query that starts and has no watermark yet, or recounts.
    """

    name: str
    query: str
    level: Level | None
    what: str


def watermark_of(state: Row) -> datetime | None:
    """state: a row of topic query-states, contract.topics.QueryState. None before the query has one."""
    watermark: datetime | None = state["progress"] and state["progress"]["watermark"]
    return watermark


def may_recount(states: Iterable[Row], newest: Mapping[str, datetime]) -> dict[str, datetime | None]:
    """The queries that have fallen behind their newest watermark, each with its current one; None for a query that runs and has none yet.

    states: rows of topic query-states. newest: the newest watermark of each query. Such a query reports on the past.
    """
    watermarks = {state["query"]: watermark_of(state) for state in states if state["state"] == "running" or watermark_of(state)}
    return {
        query: watermark for query, watermark in watermarks.items() if query in newest and (watermark is None or watermark < newest[query])
    }


def cameras(alerts: Iterable[Row], states: Iterable[Row], watermark: datetime | None, silence: timedelta) -> list[Incident]:
    """alerts: rows of topic nest-camera-alerts, contract.domains.nest.CameraAlert. states: of nest-camera-status, CameraStatus.

    watermark: of their query. silence: after which a camera is offline. The query does not report each time that a flapping camera is
    back: the incident is over when it has been online for STEADY, which is known `silence` later, or has begun another one.
    """
    by_camera = {state["device_id"]: state for state in states}
    return [_camera(row, by_camera.get(row["device_id"]), watermark, STEADY + silence) for row in alerts]


def _camera(row: Row, state: Row | None, watermark: datetime | None, steady: timedelta) -> Incident:
    alert, since = row["alert"], row["since"]
    is_known = alert != "flapping" or watermark is not None
    if alert == "flapping" and state is not None and watermark is not None:
        is_steady = state["state"] == "online" and watermark > state["since"] + steady
        if is_steady or (state["incident"] or since) > since:
            alert, since = "back", state["since"] if is_steady else since
    return Incident(
        f"camera {row['device_id']} {utc_text(row['incident'] or row['since'])}",
        STATUS,
        None if not is_known else "resolved" if alert == "back" else "warning",
        f"camera {row['device_id']} in {row['zip_code']} {_OF_CAMERA[alert]} since {utc_text(since)}",
    )


def crowds(rows: Iterable[Row], watermark: datetime | None) -> list[Incident]:
    """rows: of topic nest-crowds, contract.domains.nest.Crowd. watermark: of its query. A crowd is over when its window is."""
    return [
        Incident(
            f"crowd {row['zip_code']} {utc_text(row['window']['start'])}",
            CROWDS,
            None if watermark is None else "resolved" if watermark >= row["window"]["end"] else "warning",
            f"{row['crowd']} people seen in {row['zip_code']} from {utc_text(row['window']['start'])} to {utc_text(row['window']['end'])}",
        )
        for row in rows
    ]


def alarms(rows: Mapping[bytes, Row], watermark: datetime | None) -> list[Incident]:
    """An incident for each alarm of a device, by its newest hour.

    rows: those of nest-alarms in topic alerts, contract.topics.Alert, by key. watermark: of the query. An alarm that lasts has a row in each
    hour, so it is over when a whole hour without one is.
    """
    by_alarm: dict[str, list[Row]] = {}
    for key, row in rows.items():
        key_fields = decode_json(key)
        parts = [part for field in _OF_ALARM if isinstance(part := key_fields.get(field), str)]
        if len(parts) == len(_OF_ALARM):  # else another program has written it
            by_alarm.setdefault(" ".join(parts), []).append(row)
    return [_alarm(name, alarm_rows, watermark) for name, alarm_rows in by_alarm.items()]


def _alarm(name: str, rows: Sequence[Row], watermark: datetime | None) -> Incident:
    hour = max(row["time"] for row in rows)
    worst = min((row for row in rows if row["time"] == hour), key=lambda row: row["level"])  # "error" before "warning"
    level: Level | None = None if watermark is None else "resolved" if watermark >= hour + 2 * AN_HOUR else worst["level"]
    return Incident(name, ALARMS, level, f"{worst['what']}, in the hour from {utc_text(hour)}")
