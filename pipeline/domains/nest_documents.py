"""Reads Nest documents: the devices in them, and the sightings of people by cameras.

A document reports one home. Its `devices` hold an object for each type, and in it each device by its id:
devices{cameras{id: camera}, thermostats{id: thermostat}, ...}.
"""

from collections.abc import Callable
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.formats.json_text import as_text, is_infinite, is_rounded, parsed
from pipeline.formats.json_values import as_read, is_identifier, may_be_rounded, misfit, too_long, values
from pipeline.sources.kafka import ORIGIN, latest_event
from pipeline.sources.static_tables import StaticTable, fields_of

DEVICE_LOCATIONS = StaticTable("device_locations.csv", schema="device_id string, zip_code string", unique="device_id")
SIGHTING = ("device_id", "start_time")
"""The columns that identify a sighting: several documents may report the same one."""
_SIGHTING_FIELDS = "device_id string, last_event struct<has_person: boolean, start_time: timestamp>"
_A_PERSON = r'has_person"[ \t\n\r]*:[ \t\n\r]*true'


def sightings(records: DataFrame, future: str) -> DataFrame:
    """Sightings of people, one row per report: a sighting that is reported twice gives two rows.

    records: columns of sources.kafka.RECORD.
    future: how far an event may be ahead of its record, e.g. "10 minutes"; events further ahead are dropped.
    Returns topic, partition, offset, device_id, start_time. Parses only the documents and fields it needs: parsing takes most of a batch's
    time.
    """
    text, start_time = F.col("value").cast("string"), F.col("device.last_event.start_time")
    may_show_a_person = text.rlike(_A_PERSON) | text.contains("\\")  # with a backslash, a name can be spelled differently
    is_placed = start_time <= latest_event(future)  # null without a start_time
    return (
        devices_of(records.where(may_show_a_person), "cameras", _SIGHTING_FIELDS)
        .where(F.col("device.last_event.has_person") & is_placed)
        .select(*ORIGIN, "device_id", start_time.alias("start_time"))
    )


def devices_of(records: DataFrame, device_type: str, ddl: str) -> DataFrame:
    """The devices of that type in all documents, one row each: columns of ORIGIN, timestamp, clock, device_id, and device with the fields of `ddl`.

    records: columns of sources.kafka.RECORD. ddl: the fields to parse, e.g. "device_id string, is_online boolean". device_id is the
    device's field, or else its name in the document. Devices with identifiers that are too long are left out.
    """
    text, fields = F.col("value").cast("string"), fields_of(ddl)
    by_id = _by_id(text, parsed(text, f"devices struct<{device_type}: {map_type(fields)}>"), device_type, fields)
    judged = records.where("clock is not null").withColumn("is_rounded", may_be_rounded(text))  # once, and not for each device
    each = judged.select(*ORIGIN, "timestamp", "clock", "is_rounded", F.explode(by_id).alias("id", "read"))
    ids = [F.coalesce("read.device_id", "id"), *(F.col("read.structure_id") for name in fields.names if name == "structure_id")]
    return each.where(reduce(and_, map(is_identifier, ids))).select(
        *ORIGIN, "timestamp", "clock", ids[0].alias("device_id"), values(F.col("read"), fields, F.col("is_rounded")).alias("device")
    )


def map_type(fields: T.StructType) -> str:
    """The type of devices with those fields by their id, as from_json reads them."""
    return f"map<string, {as_read(fields).simpleString()}>"


def _by_id(text: Column, reading: Column, device_type: str, fields: T.StructType) -> Column:
    """The devices of a document by their id.

    If some value is not of its type, each device is read by itself: Spark drops a whole map for one value that is no struct.
    """

    def by_id(document: Column, kind: str) -> Column:
        return F.from_json(document, f"devices struct<{device_type}: map<string, {kind}>>")["devices"][device_type]

    def read_by_itself(_: Column, device: Column, exact: Column) -> Column:
        def with_numbers(read: Column) -> Column:
            for name in (field.name for field in as_read(fields) if isinstance(field.dataType, T.VariantType)):
                read = read.withField(name, F.from_json(F.to_json(exact), f"{name} variant")[name])
            return read

        # Spark would parse the device once per mention.
        return F.when(is_object(exact), F.transform(F.array(F.from_json(device, as_read(fields))), with_numbers)[0])

    def devices(read: Column) -> Column:
        texts, exact = as_text(text, is_infinite, _read_as_text), as_text(text, is_rounded)
        by_themselves = F.map_zip_with(by_id(texts, "string"), by_id(exact, "variant"), read_by_itself)
        return F.when(read["misfits"], by_themselves).otherwise(read["document"]["devices"][device_type])

    return F.transform(F.array(reading), devices)[0]


def _read_as_text(infinite: Column) -> Column:
    """The string that Spark reads from a number beyond the doubles, with its quotes, in JSON."""
    return F.when(infinite.startswith("-"), r'"\u0022-Infinity\u0022"').otherwise(r'"\u0022Infinity\u0022"')


def is_object(value: Column) -> Column:
    """Whether a variant is an object."""
    return F.schema_of_variant(value).startswith("OBJECT")


def report_columns() -> tuple[Column, Column]:
    """Columns reported_at (the Kafka timestamp) and date (its UTC day)."""
    return F.col("timestamp").alias("reported_at"), F.to_date("timestamp").alias("date")


def devices_in(by_id: Column) -> Column:
    """The devices in a map, as an array without nulls."""
    return F.filter(F.coalesce(F.map_values(by_id), F.array()), lambda device: device.isNotNull())


def first_reason(devices_read: Column, reason_of: Callable[[Column], Column]) -> Column:
    return F.get(F.filter(F.transform(devices_read, reason_of), lambda reason: reason.isNotNull()), F.lit(0))


def first_misfit(devices_read: Column, fields: T.StructType, is_rounded: Column) -> Column:
    """The first `misfit` of a device, or null."""
    return first_reason(devices_read, lambda device: misfit(device, fields, is_rounded))


def too_long_id(by_id: Column) -> Column:
    """The reason why a device in the map has no id that can be used, or null."""
    is_long = F.exists(F.map_entries(by_id), lambda entry: ~is_identifier(F.coalesce(entry["value"]["device_id"], entry["key"])))
    return F.when(is_long, too_long("device_id"))
