"""The parts of a Works-with-Nest document, as the API sends them."""

from datetime import UTC, datetime
from typing import Any

from producers.delivery.events import MS_PER_SECOND
from producers.nest.homes import Camera, Home

CLIENT_VERSION = 1

Part = dict[str, Any]
_WEB, _APP, _IMAGES = "https://home.example.com", "nestmobile://example.com", "https://images.example.com"


def iso_utc(time_ms: int) -> str:
    """A timestamp in the API's format: 2016-12-29T00:00:00.000Z."""
    return datetime.fromtimestamp(time_ms / MS_PER_SECOND, UTC).isoformat(timespec="milliseconds")[:23] + "Z"


def iso_utc_brief(time_ms: int) -> str:
    """A timestamp without milliseconds, as the API sometimes writes it: 2016-12-29T00:00:00Z."""
    return iso_utc(time_ms)[:19] + "Z"


def home_document(home: Home, number: int, thermostats: Part, smoke_co_alarms: Part, cameras: Part | None) -> Part:
    """The document of `home` with the sequence number `number`. cameras: None for one without, as the API sometimes sends it."""
    devices = {"thermostats": thermostats, "smoke_co_alarms": smoke_co_alarms}
    structure: Part = {"structure_id": home.structure_id, "name": home.name}
    if cameras is not None:
        devices |= {"cameras": cameras, "companyName": {}}
        structure["cameras"] = list(cameras)
    return {
        "metadata": {"access_token": f"c.FAKE-TOKEN-{number:012x}", "client_version": CLIENT_VERSION},
        "devices": devices,
        "structures": {home.structure_id: structure},
    }


def camera_part(home: Home, camera: Camera, *, is_online: bool, online_changed_ms: int) -> Part:
    """The camera, without last_event."""
    path = f"cameras/{camera.device_id}"
    zones = [{"name": name, "id": number} for number, name in enumerate(camera.activity_zones or (), start=1)]
    return {
        "device_id": camera.device_id,
        "software_version": camera.software_version,
        "structure_id": home.structure_id,
        "where_id": camera.where_id,
        "where_name": camera.where_name,
        "name": camera.where_name,
        "name_long": f"{camera.where_name} Camera",
        "is_online": is_online,
        "is_streaming": is_online,
        "is_audio_input_enabled": True,
        "last_is_online_change": iso_utc(online_changed_ms),
        "is_video_history_enabled": camera.has_video_history,
        "web_url": f"{_WEB}/{path}",
        "app_url": f"{_APP}/{path}",
        "is_public_share_enabled": camera.is_public,
        **({} if camera.activity_zones is None else {"activity_zones": zones}),
        "public_share_url": f"{_WEB}/public/{camera.device_id}" if camera.is_public else "",
        "snapshot_url": f"{_IMAGES}/{path}/snapshot.jpg?auth=FAKE",
    }


def event_urls(camera: Camera, number: int) -> Part:
    """The addresses of the camera's event `number`."""
    path = f"cameras/{camera.device_id}/events/{number}"
    return {
        "web_url": f"{_WEB}/{path}",
        "app_url": f"{_APP}/{path}",
        "image_url": f"{_IMAGES}/{path}.jpg",
        "animated_image_url": f"{_IMAGES}/{path}.gif",
    }


def thermostat(home: Home, now_ms: int, target_c: float, ambient_c: float) -> Part:
    """The value of `thermostats`: one, connected at `now_ms`."""
    own = {
        "can_heat": True,
        "can_cool": False,
        "has_fan": False,
        "has_leaf": True,
        "temperature_scale": "C",
        "target_temperature_c": target_c,
        "target_temperature_f": round(target_c * 9 / 5 + 32),
        "ambient_temperature_c": ambient_c,
        "ambient_temperature_f": round(ambient_c * 9 / 5 + 32),
        "humidity": 40,
        "hvac_mode": "heat",
        "hvac_state": "heating" if ambient_c < target_c else "off",
    }
    return _device(home, "thermostat", "Hallway", now_ms, own)


def alarm(home: Home, now_ms: int, states: dict[str, str]) -> Part:
    """The value of `smoke_co_alarms`: one, connected at `now_ms`. states: smoke_alarm_state, co_alarm_state, battery_health."""
    return _device(home, "alarm", "Kitchen", now_ms, {**states, "is_manual_test_active": False})


def _device(home: Home, kind: str, where: str, now_ms: int, own: Part) -> Part:
    """A home's one device of a kind, with the fields of every device and its own."""
    device_id = f"{kind}-{home.structure_id.removeprefix('structure-')}"
    of_all = {"device_id": device_id, "structure_id": home.structure_id, "name": where, "name_long": f"{where} {kind.title()}"}
    state = {"where_name": where, "software_version": "5.6.1-4", "is_online": True, "last_connection": iso_utc(now_ms)}
    return {device_id: {**of_all, **state, **own}}
