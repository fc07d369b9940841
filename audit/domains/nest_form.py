"""The form of Nest documents as the API writes them, with at most one device of each type, as in most homes."""

from audit.values.choices import WithoutForm
from audit.values.forms import DEGREES, FLAG, IDENTIFIER, MOMENT, TEXT, WHOLE, elements, entry, fields

_TEXTS = elements(TEXT)
_EVENT = fields(
    *((name, FLAG) for name in ("has_sound", "has_motion", "has_person")),
    ("start_time", MOMENT),
    ("end_time?", MOMENT),
    ("urls_expire_time", MOMENT),
    *((name, TEXT) for name in ("web_url", "app_url", "image_url", "animated_image_url")),
    ("activity_zone_ids", _TEXTS),
)
_CAMERA = fields(
    ("device_id", IDENTIFIER),
    *((name, TEXT) for name in ("software_version", "structure_id", "where_id", "where_name", "name", "name_long")),
    *((name, FLAG) for name in ("is_online", "is_streaming", "is_audio_input_enabled")),
    ("last_is_online_change", MOMENT),
    ("is_video_history_enabled", FLAG),
    ("web_url", TEXT),
    ("app_url", TEXT),
    ("is_public_share_enabled", FLAG),
    ("activity_zones?", elements(fields(("name", TEXT), ("id", WHOLE)))),
    ("public_share_url", TEXT),
    ("snapshot_url", TEXT),
    ("last_event?", _EVENT),
)
_DEVICE = (
    ("device_id", IDENTIFIER),
    ("structure_id", IDENTIFIER),
    *((name, TEXT) for name in ("name", "name_long", "where_name", "software_version")),
    ("is_online", FLAG),
    ("last_connection", MOMENT),
)
_THERMOSTAT = fields(
    *_DEVICE,
    *((name, FLAG) for name in ("can_heat", "can_cool", "has_fan", "has_leaf")),
    ("temperature_scale", TEXT),
    *((f"{partition}_temperature_{scale}", DEGREES) for partition in ("target", "ambient") for scale in "cf"),
    ("humidity", WHOLE),
    ("hvac_mode", TEXT),
    ("hvac_state", TEXT),
)
_ALARM = fields(
    *_DEVICE, *((name, IDENTIFIER) for name in ("smoke_alarm_state", "co_alarm_state", "battery_health")), ("is_manual_test_active", FLAG)
)

_DOCUMENT = fields(
    ("metadata", fields(("access_token", TEXT), ("client_version", WHOLE))),
    (
        "devices",
        fields(
            ("thermostats", entry(_THERMOSTAT)),
            ("smoke_co_alarms", entry(_ALARM)),
            ("cameras?", entry(_CAMERA)),
            ("companyName?", r"\{\}"),
        ),
    ),
    ("structures", entry(fields(("structure_id", TEXT), ("name", TEXT), ("cameras?", _TEXTS)))),
)

# To the second, as texts.
_IN_TIME = " AND ".join(
    f"""coalesce(list_max(regexp_extract_all(document, '{name}":"([^"]{{{{19}}}})', 1)), '') < strftime(clock + INTERVAL '{{future}}', '%Y-%m-%dT%H:%M:%S')"""
    for name in ("start_time", "last_connection")
)


def not_in_order(future: str) -> WithoutForm:
    """The documents from which dead letters may come. future: how far in the future an event may be."""
    return WithoutForm(_DOCUMENT, _IN_TIME.format(future=future))
