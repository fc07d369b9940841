"""The JSON of Works-with-Nest documents.

A document is defined once, as a dict with a placeholder for each changing part. `Template` turns it into JSON, so a report
only fills a few placeholders instead of encoding the whole document.
"""

from datetime import UTC, datetime
from typing import Any

import orjson

from producers.delivery.events import MS_PER_SECOND
from producers.nest.homes import Camera, Home

CLIENT_VERSION = 1
URLS_EXPIRE_MS = 10 * 24 * 3600 * MS_PER_SECOND

_WEB, _APP, _IMAGES = "https://home.example.com", "nestmobile://example.com", "https://images.example.com"
_RAW = "<raw>"
"""Placeholder in a template for a whole JSON value."""
_TEXT = "<text>"
"""Placeholder for part of a string."""
JSON_TRUTH = {False: b"false", True: b"true"}


def iso_utc(time_ms: int) -> bytes:
    """A timestamp in the API's format: 2016-12-29T00:00:00.000Z."""
    return datetime.fromtimestamp(time_ms / MS_PER_SECOND, UTC).isoformat(timespec="milliseconds")[:23].encode() + b"Z"


def iso_utc_brief(time_ms: int) -> bytes:
    """A timestamp without milliseconds, as the API sometimes writes it: 2016-12-29T00:00:00Z."""
    return iso_utc(time_ms)[:19] + b"Z"


class Template:
    """JSON with placeholders: `Template(document).fill(a, b)` fills `_RAW` and `_TEXT` in document order."""

    def __init__(self, document: Any) -> None:  # noqa: ANN401 - any JSON value
        text = orjson.dumps(document).replace(b"%", b"%%")
        self.pattern = text.replace(b'"' + _RAW.encode() + b'"', b"%s").replace(_TEXT.encode(), b"%s")

    def fill(self, *values: bytes) -> bytes:
        """The JSON with `values` in the placeholders."""
        return self.pattern % values


def home_template(home: Home, *, has_cameras: bool) -> Template:
    """The document of `home`; without cameras, as the API sometimes sends it, unless `has_cameras`.

    Placeholders: the access token's number, the values of `thermostats`, `smoke_co_alarms` and, if it has them, `cameras`.
    """
    cameras = {"cameras": _RAW, "companyName": {}} if has_cameras else {}
    names = {"cameras": [camera.device_id for camera in home.cameras]} if has_cameras else {}
    return Template(
        {
            "metadata": {"access_token": f"c.FAKE-TOKEN-{_TEXT}", "client_version": CLIENT_VERSION},
            "devices": {"thermostats": _RAW, "smoke_co_alarms": _RAW, **cameras},
            "structures": {home.structure_id: {"structure_id": home.structure_id, "name": home.name, **names}},
        }
    )


def camera_template(home: Home, camera: Camera) -> Template:
    """The camera's object, without last_event. Placeholders: is_online, is_streaming, last_is_online_change."""
    path = f"cameras/{camera.device_id}"
    document: dict[str, Any] = {
        "device_id": camera.device_id,
        "software_version": camera.software_version,
        "structure_id": home.structure_id,
        "where_id": camera.where_id,
        "where_name": camera.where_name,
        "name": camera.where_name,
        "name_long": f"{camera.where_name} Camera",
        "is_online": _RAW,
        "is_streaming": _RAW,
        "is_audio_input_enabled": True,
        "last_is_online_change": _TEXT,
        "is_video_history_enabled": camera.has_video_history,
        "web_url": f"{_WEB}/{path}",
        "app_url": f"{_APP}/{path}",
        "is_public_share_enabled": camera.is_public,
        "activity_zones": [{"name": name, "id": number} for number, name in enumerate(camera.activity_zones or (), start=1)],
        "public_share_url": f"{_WEB}/public/{camera.device_id}" if camera.is_public else "",
        "snapshot_url": f"{_IMAGES}/{path}/snapshot.jpg?auth=FAKE",
    }
    if camera.activity_zones is None:
        del document["activity_zones"]
    return Template(document)


def last_event_template(camera: Camera, *, has_ended: bool) -> Template:
    """The camera's last_event. Placeholders in order: has_sound, has_motion, has_person, start_time, end_time if `has_ended`.

    Then urls_expire_time, the event number (four times, in the URLs), and activity_zone_ids.
    """
    path = f"cameras/{camera.device_id}/events/{_TEXT}"
    document = {
        "has_sound": _RAW,
        "has_motion": _RAW,
        "has_person": _RAW,
        "start_time": _TEXT,
        "end_time": _TEXT,
        "urls_expire_time": _TEXT,
        "web_url": f"{_WEB}/{path}",
        "app_url": f"{_APP}/{path}",
        "image_url": f"{_IMAGES}/{path}.jpg",
        "animated_image_url": f"{_IMAGES}/{path}.gif",
        "activity_zone_ids": _RAW,
    }
    if not has_ended:
        del document["end_time"]
    return Template(document)


def thermostat_template(home: Home, target_c: float) -> Template:
    """The value of `thermostats`. Placeholders: last_connection, ambient_temperature_c and _f, hvac_state."""
    return _devices(
        home,
        "thermostat",
        "Hallway",
        {
            "last_connection": _TEXT,
            "can_heat": True,
            "can_cool": False,
            "has_fan": False,
            "has_leaf": True,
            "temperature_scale": "C",
            "target_temperature_c": target_c,
            "target_temperature_f": round(target_c * 9 / 5 + 32),
            "ambient_temperature_c": _RAW,
            "ambient_temperature_f": _RAW,
            "humidity": 40,
            "hvac_mode": "heat",
            "hvac_state": _TEXT,
        },
    )


def alarm_template(home: Home) -> Template:
    """The value of `smoke_co_alarms`. Placeholders: last_connection, smoke_alarm_state, co_alarm_state, battery_health."""
    return _devices(
        home,
        "alarm",
        "Kitchen",
        {
            "last_connection": _TEXT,
            "smoke_alarm_state": _TEXT,
            "co_alarm_state": _TEXT,
            "battery_health": _TEXT,
            "is_manual_test_active": False,
        },
    )


def _devices(home: Home, kind: str, where: str, own: dict[str, Any]) -> Template:
    """A home's one device of a kind, with the fields of every device and its own."""
    device_id = f"{kind}-{home.structure_id.removeprefix('structure-')}"
    of_all = {"device_id": device_id, "structure_id": home.structure_id, "name": where, "name_long": f"{where} {kind.title()}"}
    return Template({device_id: {**of_all, "where_name": where, "software_version": "5.6.1-4", "is_online": True, **own}})
