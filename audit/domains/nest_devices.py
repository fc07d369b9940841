"""The devices of Nest documents: what is read of each, and what the results on thermostats and smoke alarms must be."""

from functools import partial

from audit.audited import Facts, Table
from audit.checks.archive import Archive
from audit.values.fields import OTHER_TYPE, flaws, read, too_long, value, values, when
from contract.domains.nest import NEST_LOGS, NEST_TEMPERATURES
from contract.topics import ALERTS
from infrastructure import durations
from infrastructure.settings import Settings

# A type that is no object is one device without a name. A document without devices is one without a type.
DEVICES = """
    SELECT * EXCLUDE (of_type, one), of_type.key AS device_type, one.key AS id, one.value AS device
    FROM (
        SELECT *, unnest(parts(of_type.value)) AS one
        FROM (
            SELECT
                topic, partition, "offset", "timestamp", clock,
                unnest(coalesce(
                    map_entries(json_transform(document, '{"devices": "MAP(VARCHAR, JSON)"}').devices), [{'key': NULL, 'value': NULL}])) AS of_type
            FROM documents WHERE document IS NOT NULL))
    WHERE device IS NOT NULL OR device_type IS NULL
"""

DEVICE = {
    "device_id": "text",
    **dict.fromkeys(("structure_id", "where_name", "name_long", "software_version"), "text"),
    "is_online": "flag",
    "last_connection": "moment",
    "ambient_temperature_c": "decimal(5,2)",
    "target_temperature_c": "decimal(5,2)",
    "humidity": "int",
    **dict.fromkeys(("hvac_mode", "hvac_state", "smoke_alarm_state", "co_alarm_state", "battery_health"), "text"),
}
_ALARMS = {"smoke": "smoke_alarm_state", "co": "co_alarm_state", "battery": "battery_health"}

READ_DEVICES = f"""
    SELECT *, coalesce(as_text(read.device_id), id) AS device_id
    FROM (SELECT *, {read("device", DEVICE)} AS read FROM devices WHERE device_type <> 'cameras')
"""
STEPS = {"devices": DEVICES, "read_devices": READ_DEVICES}

_CONNECTED = """
    SELECT
        topic, partition, "offset", device_type, read, device_id, coalesce(as_text(read.structure_id), 'unknown') AS structure_id,
        as_moment(read.last_connection) AS last_connection
    FROM read_devices
    WHERE is_identifier(device_id) AND is_identifier(structure_id) AND last_connection <= clock + INTERVAL '{future}'
"""

READINGS = f"""
    SELECT topic, partition, "offset", device_id, structure_id, last_connection, {value("read.ambient_temperature_c", "decimal(5,2)")} AS ambient_temperature_c
    FROM ({_CONNECTED})
    WHERE device_type = 'thermostats' AND ambient_temperature_c IS NOT NULL
"""

TEMPERATURES = """
    SELECT
        structure_id, window_of(last_connection, {window_us}) AS "window", count(*) AS readings,
        mean(sum(ambient_temperature_c), count(*), 2) AS ambient_temperature_c_avg,
        min(ambient_temperature_c) AS ambient_temperature_c_min, max(ambient_temperature_c) AS ambient_temperature_c_max{facts}
    FROM counted
    GROUP BY ALL
"""

ALARMS = f"""
    SELECT
        topic, partition, "offset", device_id, structure_id, last_connection,
        unnest([{", ".join(f"{{{{'alarm': '{alarm}', 'state': as_text(read.{name})}}}}" for alarm, name in _ALARMS.items())}], recursive := true)
    FROM ({_CONNECTED}) WHERE device_type = 'smoke_co_alarms'
"""
"""The state of each alarm in each report, also of those that are ok: they move the watermark."""
IS_RAISED = "state <> 'ok' AND is_identifier(state)"

ALARM_ALERTS = f"""
    SELECT
        device_id, structure_id, alarm, state, hour_of(last_connection) AS "window", hour_of(last_connection).start AS time,
        CASE WHEN state = 'emergency' THEN 'error' ELSE 'warning' END AS level, 'nest-alarms' AS query,
        format('{{{{}}}}: {{{{}}}}, {{{{}}}} of {{{{}}}}', alarm, state, device_id, structure_id) AS what, '' AS detail{{facts}}
    FROM counted WHERE {IS_RAISED}
    GROUP BY ALL
"""

_EXACT = [(name, "exact_text" if kind == "text" else kind) for name, kind in DEVICE.items() if name != "device_id"]
ARCHIVE = f"""
    SELECT
        topic, partition, "offset", "timestamp" AS reported_at, CAST("timestamp" AS DATE) AS date, device_type,
        coalesce(as_exact_text(read.device_id), id) AS device_id, {values("read", _EXACT)}, as_exact_text(device) AS device
    FROM read_devices
    WHERE is_identifier(device_id)
"""

_READ_ALARMS = (f"read.{name}" for name in ("ambient_temperature_c", *_ALARMS.values()))
REASONS = f"""
    SELECT topic, partition, "offset", 'no devices' AS reason FROM devices WHERE device_type IS NULL
    UNION ALL
    SELECT topic, partition, "offset", '{OTHER_TYPE}; the rest was used' FROM devices
    WHERE device_type IN ('cameras', 'thermostats', 'smoke_co_alarms') AND NOT is_object(device)
    UNION ALL
    SELECT topic, partition, "offset", unnest([
        {", ".join(flaws("read", DEVICE))}, {too_long("device_id", "device_id")},
        {", ".join(too_long(f"as_text(read.{name})", name) for name in ("structure_id", *_ALARMS.values()))},
        {when("as_moment(read.last_connection) > clock + INTERVAL '{future}'", "last_connection is in the future")},
        {when(f"as_moment(read.last_connection) IS NULL AND coalesce({', '.join(_READ_ALARMS)}) IS NOT NULL", "a reading without last_connection")}
    ]) || '; the rest was used'
    FROM read_devices WHERE device_type IN ('thermostats', 'smoke_co_alarms') AND is_object(device)
"""


def audited(settings: Settings) -> tuple[Table | Archive, ...]:
    facts = partial(Facts, source=NEST_LOGS.name, parameters={"future": settings.future}, steps=STEPS)
    window_us = durations.microseconds(settings.nest_window, "STREAMGAUGE_NEST_WINDOW")
    connected = partial(Table, event_time="last_connection", watermark=settings.watermark)
    return (
        connected(
            "nest-alarms",
            ALERTS,
            facts("alarms", sql=ALARMS),
            event_key=("device_id", "structure_id", "alarm", "state", "last_connection"),
            counts=IS_RAISED,
            key=("device_id", "structure_id", "alarm", "state", "window"),
            sql=ALARM_ALERTS,
            value=("time", "level", "query", "what", "detail"),
        ),
        connected(
            "nest-temperatures",
            NEST_TEMPERATURES,
            facts("readings", sql=READINGS),
            event_key=("device_id", "last_connection"),
            key=("structure_id", "window"),
            sql=TEMPERATURES,
            parameters={"window_us": window_us},
            growing=("readings",),
        ),
        Archive("nest-devices-archive", "nest/devices", facts("rows_of_devices", sql=ARCHIVE)),
    )
