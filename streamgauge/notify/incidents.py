"""What a person should know, by the rows of result topics. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from contract.rows import Row, decode_json
from contract.text import utc_text

STATUS, CROWDS, ALARMS = "nest-camera-status", "nest-crowds", "nest-alarms"
AN_HOUR = timedelta(hours=1)
_OF_CAMERA = {"offline": "is offline", "flapping": "goes offline again and again", "back": "is back"}


class Incident(NamedTuple):
    """What lasts, or is over. name: what no other has. query: which found it. level: "resolved" when it is over. what: one line."""

    name: str
    query: str
    level: Literal["warning", "error", "resolved"]
    what: str


def cameras(alerts: Iterable[Row]) -> list[Incident]:
    """alerts: rows of topic nest-camera-alerts, contract.domains.nest.CameraAlert."""
    return [
        Incident(
            f"camera {row['device_id']} {utc_text(row['incident'] or row['since'])}",
            STATUS,
            "resolved" if row["alert"] == "back" else "warning",
            f"camera {row['device_id']} in {row['zip_code']} {_OF_CAMERA[row['alert']]} since {utc_text(row['since'])}",
        )
        for row in alerts
    ]


def crowds(rows: Iterable[Row], watermark: datetime) -> list[Incident]:
    """rows: of topic nest-crowds, contract.domains.nest.Crowd. watermark: of its query. A crowd is over when its hour is."""
    return [
        Incident(
            f"crowd {row['zip_code']} {utc_text(row['window']['start'])}",
            CROWDS,
            "resolved" if watermark >= row["window"]["end"] else "warning",
            f"{row['crowd']} people seen in {row['zip_code']} in the hour from {utc_text(row['window']['start'])}",
        )
        for row in rows
    ]


def alarms(rows: Mapping[bytes, Row], watermark: datetime) -> list[Incident]:
    """An incident for each alarm of a device, by its newest hour.

    rows: those of nest-alarms in topic alerts, contract.topics.Alert, by key. watermark: of the query. An alarm that lasts has a row in each
    hour, so it is over when a whole hour without one is.
    """
    by_alarm: dict[str, list[Row]] = {}
    for key, row in rows.items():
        found = decode_json(key)
        name = " ".join(str(found.get(field)) for field in ("alarm", "device_id", "structure_id"))
        by_alarm.setdefault(name, []).append(row)
    return [_alarm(name, found, watermark) for name, found in by_alarm.items()]


def _alarm(name: str, rows: Sequence[Row], watermark: datetime) -> Incident:
    hour = max(row["time"] for row in rows)
    worst = min((row for row in rows if row["time"] == hour), key=lambda row: row["level"])  # "error" before "warning"
    is_over = watermark >= hour + 2 * AN_HOUR
    return Incident(name, ALARMS, "resolved" if is_over else worst["level"], f"{worst['what']}, in the hour from {utc_text(hour)}")
