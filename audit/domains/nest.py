"""What the results of the Nest domain must be: docs/values.md and docs/verify.md in SQL."""

from dataclasses import replace
from functools import partial

from audit.audited import Facts, Table
from audit.checks.archive import Archive
from audit.checks.dead_letters import DeadLetters
from audit.domains import nest_devices, nest_form, nest_status
from audit.values.choices import Holding
from audit.values.fields import flaws, read, too_long, value, values, when
from contract.domains.nest import (
    NEST_CAMERA_ACTIVITY,
    NEST_CAMERA_ALERTS,
    NEST_CAMERA_STATS,
    NEST_CAMERA_STATUS,
    NEST_CROWDS,
    NEST_LOGS,
)
from infrastructure import durations
from infrastructure.settings import Settings

CAMERA = {
    **dict.fromkeys(("device_id", "software_version", "structure_id", "where_id", "where_name", "name", "name_long"), "text"),
    **dict.fromkeys(("is_online", "is_streaming", "is_audio_input_enabled", "is_audio_input_enable"), "flag"),
    "last_is_online_change": "moment",
    "is_video_history_enabled": "flag",
    **dict.fromkeys(("web_url", "app_url"), "text"),
    "is_public_share_enabled": "flag",
    "activity_zones": "objects",
    **dict.fromkeys(("public_share_url", "snapshot_url"), "text"),
    "last_event": "object",
}
EVENT = {
    **dict.fromkeys(("has_sound", "has_motion", "has_person"), "flag"),
    **dict.fromkeys(("start_time", "end_time", "urls_expire_time"), "moment"),
    **dict.fromkeys(("web_url", "app_url", "image_url", "animated_image_url"), "text"),
    "activity_zone_ids": "texts",
}

CAMERAS = f"""
    SELECT *, coalesce(as_text(camera.device_id), id) AS device_id, {read("camera.last_event", EVENT)} AS event
    FROM (
        SELECT topic, partition, "offset", "timestamp", clock, id, {read("device", CAMERA)} AS camera
        FROM devices WHERE device_type = 'cameras' AND is_object(device))
"""
STEPS = {"devices": nest_devices.DEVICES, "cameras": CAMERAS}

# What sightings need, alone: all fields take three times as long.
SEEN = """
    SELECT topic, partition, "offset", clock, coalesce(as_text(one.value.device_id), one.key) AS device_id, one.value.last_event AS event
    FROM (
        SELECT topic, partition, "offset", clock, unnest(map_entries(json_transform(document, '{"devices": {
            "cameras": "MAP(VARCHAR, STRUCT(device_id JSON, last_event STRUCT(has_person JSON, start_time JSON)))"}}').devices.cameras)) AS one
        FROM documents)
"""

_OF_PEOPLE = Holding(r'has_person"\s*:\s*true')

SIGHTINGS = """
    SELECT topic, partition, "offset", device_id, as_moment(event.start_time) AS start_time
    FROM seen
    WHERE as_flag(event.has_person) AND is_identifier(device_id) AND start_time <= clock + INTERVAL '{future}'
"""

CAMERA_STATS = """
    SELECT coalesce(zip_code, 'unknown') AS zip_code, window_of(start_time, {window_us}) AS "window", count(*) AS count{facts}
    FROM counted LEFT JOIN device_locations USING (device_id)
    GROUP BY ALL
"""

CROWDS = """
    SELECT * EXCLUDE (times), {crowd} AS crowd, utc(times[{crowd}]) AS reached_at
    FROM (
        SELECT coalesce(zip_code, 'unknown') AS zip_code, window_of(start_time, {window_us}) AS "window", list(start_time ORDER BY start_time) AS times{facts}
        FROM counted LEFT JOIN device_locations USING (device_id)
        GROUP BY ALL)
    WHERE len(times) >= {crowd}
"""

ACTIVITY = """
    SELECT
        * REPLACE (coalesce(zip_code, 'unknown') AS zip_code, utc(first_activity) AS first_activity, utc(last_activity) AS last_activity)
    FROM (
        SELECT device_id, min(seen_at) AS first_activity, max(seen_at) AS last_activity, count(*) AS sightings{facts}
        FROM (
            SELECT *, count_if(is_first) OVER (PARTITION BY device_id ORDER BY seen_at DESC) AS session
            FROM (
                SELECT *, ends_session(lag(seen_at) OVER (PARTITION BY device_id ORDER BY seen_at DESC), seen_at, {timeout_us}) AS is_first
                FROM (SELECT *, date_trunc('millisecond', start_time) AS seen_at FROM counted)))
        WHERE session = 1
        GROUP BY device_id)
    LEFT JOIN (SELECT device_id, zip_code FROM device_locations) USING (device_id)
    WHERE epoch_us(last_activity) + {timeout_us} >= epoch_us({until})
"""

_OWN_COLUMNS = ("device_id", "is_audio_input_enabled", "is_audio_input_enable", "activity_zones", "last_event")
ARCHIVE = f"""
    SELECT
        topic, partition, "offset", "timestamp" AS reported_at, CAST("timestamp" AS DATE) AS date, device_id,
        coalesce(as_flag(camera.is_audio_input_enabled), as_flag(camera.is_audio_input_enable)) AS is_audio_input_enabled,
        {values("camera", [field for field in CAMERA.items() if field[0] not in _OWN_COLUMNS])},
        list_transform(as_objects(camera.activity_zones), lambda zone: {{{{'name': as_text(zone -> 'name'), 'id': as_text(zone -> 'id')}}}}) AS activity_zones,
        CASE WHEN is_object(camera.last_event)
            THEN {{{{{", ".join(f"'{name}': {value(f'event.{name}', kind)}" for name, kind in EVENT.items())}}}}} END AS last_event
    FROM cameras
    WHERE is_identifier(device_id) AND is_identifier(as_text(camera.structure_id))
"""

REASONS = f"""
    {nest_devices.REASONS}
    UNION ALL
    SELECT topic, partition, "offset", unnest([
        {", ".join([*flaws("camera", CAMERA), *flaws("event", EVENT)])}, {too_long("device_id", "device_id")},
        {when("as_moment(event.start_time) > clock + INTERVAL '{future}'", "start_time is in the future")},
        {when("as_flag(event.has_person) AND event.start_time IS NULL", "a person without start_time")}
    ]) || '; the rest was used'
    FROM cameras
"""


def audited(settings: Settings) -> tuple[Table | Archive | DeadLetters, ...]:
    facts = partial(Facts, source=NEST_LOGS.name, parameters={"future": settings.future}, steps=STEPS)
    seen = partial(
        Table,
        facts=facts("sightings", sql=SIGHTINGS, steps={"seen": SEEN}, only=_OF_PEOPLE),
        event_time="start_time",
        event_key=("device_id", "start_time"),
        watermark=settings.watermark,
    )
    timeout_us = round(durations.seconds(settings.inactive_after, "STREAMGAUGE_INACTIVE_AFTER") * 1000) * 1000
    window_us = durations.microseconds(settings.nest_window, "STREAMGAUGE_NEST_WINDOW")
    of_zip_code, window, timeout = ("zip_code", "window"), {"window_us": window_us}, {"timeout_us": timeout_us}
    return (
        seen("nest-camera-stats", NEST_CAMERA_STATS, key=of_zip_code, sql=CAMERA_STATS, parameters=window, growing=("count",)),
        seen("nest-crowds", NEST_CROWDS, key=of_zip_code, sql=CROWDS, parameters={"crowd": settings.crowd, **window}),
        seen("nest-camera-activity", NEST_CAMERA_ACTIVITY, key=("device_id",), sql=ACTIVITY, parameters=timeout, session_gap_us=timeout_us),
        *_status(facts("reports", sql=nest_status.REPORTS), settings),
        *nest_devices.audited(settings),
        Archive("nest-archive", "nest/cameras", facts("rows_of_cameras", sql=ARCHIVE)),
        DeadLetters(
            "nest-dead-letters",
            facts("nest_letters", sql=REASONS, steps={**STEPS, **nest_devices.STEPS}, only=nest_form.not_in_order(settings.future)),
        ),
    )


def _status(reports: Facts, settings: Settings) -> tuple[Table, Table]:
    """The states of cameras and their alerts, which one query writes."""
    silence_ms = round(durations.seconds(settings.offline_after, "STREAMGAUGE_OFFLINE_AFTER") * 1000)
    forget_ms = round(durations.seconds(settings.result_retention, "STREAMGAUGE_RESULT_RETENTION") * 1000)
    states, alerts = (partial(fold, silence_ms=silence_ms, forget_ms=forget_ms) for fold in (nest_status.states, nest_status.alerts))
    status = Table(
        "nest-camera-status",
        NEST_CAMERA_STATUS,
        reports,
        event_time="reported_at",
        event_key=("device_id", "reported_at"),
        key=("device_id",),
        watermark=settings.watermark,
        sql=nest_status.IN_ORDER,
        distinct=("device_id", "reported_at", "is_online", "sighting_ms"),
        fold=states,
        skew=nest_status.SKEW,
    )
    return status, replace(status, topic=NEST_CAMERA_ALERTS, key=("device_id", "incident"), fold=alerts)
