"""The devices of a Nest document that are not cameras: thermostats, smoke alarms, and types that this project does not know.

`devices` of a document holds an object for each type, and in it each device by its id: devices{thermostats{id: device}, ...}.
"""

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract.domains.nest import NEST_TEMPERATURES
from infrastructure.settings import Settings
from pipeline.domains.nest_documents import (
    devices_in,
    devices_of,
    first_misfit,
    first_reason,
    is_object,
    map_type,
    report_columns,
    too_long_id,
)
from pipeline.formats.json_text import as_text, is_long, is_lost, may_be_lost, parsed
from pipeline.formats.json_values import as_read, is_identifier, may_be_rounded, time, too_long, values
from pipeline.query import Query
from pipeline.sinks.archives import ParquetArchive
from pipeline.sinks.topics import AlertsTopic, CompactedTopic
from pipeline.sources.files import Files
from pipeline.sources.kafka import ORIGIN, KafkaTopic, latest_event
from pipeline.sources.static_tables import UNKNOWN, fields_of
from pipeline.sources.watermarks import Watermark

DEVICE = (
    "device_id string, structure_id string, where_name string, name_long string, software_version string, is_online boolean, "
    "last_connection timestamp, ambient_temperature_c decimal(5,2), target_temperature_c decimal(5,2), humidity int, hvac_mode string, "
    "hvac_state string, smoke_alarm_state string, co_alarm_state string, battery_health string"
)
"""The fields of a device that queries often need. A thermostat lacks the alarms, a smoke alarm the temperatures."""
_BY_NAME, _KINDS = "map<string, string>", "map<string, variant>"
_OBJECT_IN_A_STRING = r'"\s*(?:\\[nrtu]|\{)'
"""A string that may hold the text of an object, which is none. It is rare, so only then do variants tell what is an object."""
ALARMS = "nest-alarms"
_ALARMS = {"smoke": "smoke_alarm_state", "co": "co_alarm_state", "battery": "battery_health"}
_READING = ("device_id", "last_connection")
_READ = (*ORIGIN, "device_id", "structure_id", "last_connection")


def devices(records: DataFrame) -> DataFrame:
    """All devices of all documents that are not cameras, one row each, each whole.

    A type that is not an object of devices gives one row, without device_id.

    records: columns of sources.kafka.RECORD.
    Returns topic, partition, offset, reported_at (the Kafka timestamp), date (the UTC day of reported_at), device_type (the name in the
    document), the columns of DEVICE (null where the device has no such field, or one of another type), and device (its JSON; numbers of
    more than 38 digits, and others that no double keeps, are strings).
    """
    text = F.col("value").cast("string")
    exact = F.from_json(as_text(text, lambda number: is_lost(number) | is_long(number)), f"devices {_BY_NAME}")["devices"]
    by_type = F.transform(
        F.array(parsed(text, f"devices {_BY_NAME}")["document"]["devices"]),
        lambda read: F.when(read.isNotNull() & may_be_lost(text), exact).otherwise(read),
    )[0]
    kinds = F.when(text.rlike(_OBJECT_IN_A_STRING), F.from_json(text, f"devices {_KINDS}")["devices"])
    types = (
        records.where("clock is not null")
        .select(*ORIGIN, "timestamp", kinds.alias("kinds"), F.explode(by_type).alias("device_type", "text"))
        .where("device_type <> 'cameras'")
        .withColumn("kind", F.col("kinds")[F.col("device_type")])
    )
    by_id = F.when(_may_be_object(F.col("kind")), F.from_json("text", _BY_NAME))
    each = types.withColumn("by_id", by_id).select("*", F.explode_outer("by_id").alias("id", "json"))
    kind = F.when(is_object(F.col("kind")), F.from_json(F.to_json("kind"), _KINDS)[F.col("id")]).otherwise(F.col("kind"))
    whole = each.withColumn("device", F.when(F.col("by_id").isNull(), F.col("text")).otherwise(F.col("json")))
    fields = [f"accepted.{name}" for name in fields_of(DEVICE).names if name != "device_id"]
    return (
        whole.where("device is not null")
        .withColumn("read", F.when(_may_be_object(kind), F.from_json("device", as_read(fields_of(DEVICE)))))
        .withColumn("device_id", F.coalesce("read.device_id", "id"))
        .where(is_identifier(F.col("device_id")))
        .withColumn("accepted", values(F.col("read"), fields_of(DEVICE), may_be_rounded(F.col("device"))))
        .select(*ORIGIN, *report_columns(), "device_type", "device_id", *fields, "device")
    )


def _may_be_object(kind: Column) -> Column:
    return F.coalesce(is_object(kind), F.lit(True))  # noqa: FBT003


def readings(records: DataFrame, future: str) -> DataFrame:
    """The readings of thermostats, one row per report: a reading that is reported twice gives two rows.

    A reading is of the time at which the thermostat was last connected. One that is offline repeats its last reading.

    records: columns of sources.kafka.RECORD.
    future: how far a reading may be ahead of its record, e.g. "10 minutes"; those further ahead are left out.
    Returns topic, partition, offset, device_id, structure_id ("unknown" without one), last_connection, ambient_temperature_c. Parses only
    the fields it uses.
    """
    read = _of_type(records, "thermostats", ("ambient_temperature_c decimal(5,2)",), future)
    return read.select(*_READ, "device.ambient_temperature_c").where("ambient_temperature_c is not null")


def temperatures(read: DataFrame, window: str = "1 hour") -> DataFrame:
    """How warm it was per structure and window.

    read: columns of `readings`; duplicates, of the same device_id and last_connection, are removed.
    window: the length of the windows.
    Returns structure_id, window{start, end}, readings (long), and ambient_temperature_c_avg, _min and _max (decimal, two places).
    """
    measure = "ambient_temperature_c"
    return (
        read.dropDuplicates(list(_READING))
        .groupBy("structure_id", F.window("last_connection", window))
        .agg(
            F.count("*").alias("readings"),
            # avg() rounds to six digits, so a cast of its result would round twice.
            (F.sum(measure) / F.count("*")).cast("decimal(5,2)").alias(f"{measure}_avg"),
            F.min(measure).alias(f"{measure}_min"),
            F.max(measure).alias(f"{measure}_max"),
        )
    )


def alarms(records: DataFrame, future: str) -> DataFrame:
    """The reports of smoke alarms, one row each, also those that are ok, because they advance the watermark.

    records, future: as for `readings`.
    Returns topic, partition, offset, device_id, structure_id ("unknown" without one), last_connection, states (by alarm: smoke, co, battery).
    """
    read = _of_type(records, "smoke_co_alarms", [f"{field} string" for field in _ALARMS.values()], future)
    states = F.create_map(*(column for alarm, field in _ALARMS.items() for column in (F.lit(alarm), F.col(f"device.{field}"))))
    return read.select(*_READ, states.alias("states"))


def alarm_alerts(reports: DataFrame) -> DataFrame:
    """One alert for each alarm, state other than ok, and hour, as soon as it is first reported in that hour.

    An alert contains nothing of that report, so it is the same in whatever order reports arrive.

    reports: columns of `alarms`.
    Returns device_id, structure_id, alarm, state, window{start, end}, and the columns of an alert: time (start of the hour), level (error in
    an emergency), query, what, detail.
    """
    alarm = ("device_id", "structure_id", "alarm", "state")
    # Exploded here: Spark would filter a column of the reports before the watermark, which would wait for the next alarm.
    states = reports.select(*_READING, "structure_id", F.explode("states").alias("alarm", "state"))
    raised = states.where((F.col("state") != "ok") & is_identifier(F.col("state")))
    hours = raised.dropDuplicates([*alarm, "last_connection"]).select(*alarm, F.window("last_connection", "1 hour"))
    level = F.when(F.col("state") == "emergency", "error").otherwise("warning")
    what = F.format_string("%s: %s, %s of %s", "alarm", "state", "device_id", "structure_id")
    return hours.dropDuplicates([*alarm, "window"]).select(
        *alarm,
        "window",
        F.col("window.start").alias("time"),
        level.alias("level"),
        F.lit(ALARMS).alias("query"),
        what.alias("what"),
        F.lit("").alias("detail"),
    )


def _of_type(records: DataFrame, device_type: str, fields: Sequence[str], future: str) -> DataFrame:
    """The devices of that type that were connected, and not in the future: the columns of _READ, and device{fields}."""
    return (
        devices_of(records, device_type, f"device_id string, structure_id string, last_connection timestamp, {', '.join(fields)}")
        .where(F.col("device.last_connection") <= latest_event(future))  # null without a last_connection
        .withColumns(
            {
                "structure_id": F.coalesce("device.structure_id", F.lit(UNKNOWN)),
                "last_connection": F.col("device.last_connection"),
            }
        )
    )


def reason(devices_read: Column, text: Column, future: str) -> Column:
    """Why the thermostats and smoke alarms of a document cannot be used in full, or null. devices_read: with `read_types()`, from `text`."""
    every = F.concat(*(devices_in(devices_read[name]) for name in ("thermostats", "smoke_co_alarms")))

    def last_connection(device: Column) -> Column:
        return time(device["last_connection"])

    def is_timeless(device: Column) -> Column:
        reads = (F.try_variant_get(device["ambient_temperature_c"], "$", "string"), *(device[name] for name in _ALARMS.values()))
        return last_connection(device).isNull() & F.coalesce(*reads).isNotNull()

    def names_too_long(device: Column) -> Column:
        return F.coalesce(*(F.when(~is_identifier(device[name]), too_long(name)) for name in ("structure_id", *_ALARMS.values())))

    return F.coalesce(
        F.when(F.exists(every, lambda device: last_connection(device) > latest_event(future)), "last_connection is in the future"),
        F.transform(
            F.array(F.when(F.size(every) > 0, may_be_rounded(text))), lambda is_rounded: first_misfit(every, fields_of(DEVICE), is_rounded)
        )[0],
        first_reason(every, names_too_long),
        *(too_long_id(devices_read[name]) for name in ("thermostats", "smoke_co_alarms")),
        F.when(F.exists(every, is_timeless), "a reading without last_connection"),
    )


def read_types() -> str:
    """The types of `devices` that `reason` judges, as from_json reads them."""
    return ", ".join(f"{name}: {map_type(fields_of(DEVICE))}" for name in ("thermostats", "smoke_co_alarms"))


def queries(source: KafkaTopic | Files, settings: Settings) -> tuple[Query, ...]:
    """The queries on these devices, all on request."""
    return (
        Query(
            "nest-temperatures",
            source=source,
            decode=partial(readings, future=settings.future),
            watermark=Watermark("last_connection"),
            transform=partial(temperatures, window=settings.nest_window),
            sink=CompactedTopic(NEST_TEMPERATURES, key=("structure_id", "window")),
            mode="update",
            trigger_seconds=10,
            on_request=True,
            version=2,
        ),
        Query(
            ALARMS,
            source=source,
            decode=partial(alarms, future=settings.future),
            watermark=Watermark("last_connection"),
            transform=alarm_alerts,
            sink=AlertsTopic(key=("device_id", "structure_id", "alarm", "state", "window")),
            mode="update",
            trigger_seconds=5,
            on_request=True,
            version=2,
        ),
        Query(
            "nest-devices-archive",
            source=source,
            decode=devices,
            sink=ParquetArchive(
                "nest/devices",
                partition_by="date",
                event_key=("device_type", "device_id", "last_connection"),
                is_event="last_connection is not null",
            ),
            trigger_seconds=30,
            on_request=True,
        ),
    )
