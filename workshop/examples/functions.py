"""Functions on one row: text, JSON, CSV, maps, arrays, and your own in Python."""

import struct
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

REPORTS = [
    '{"device_id": "cam-1", "zip_code": "94107", "battery": 81, "event": {"start": "2026-01-01T12:05:00Z", "zones": ["door", "garden"]}}',
    '{"device_id": "cam-2", "zip_code": "94107", "battery": 40, "event": {"start": "2026-01-01T12:40:00Z", "zones": ["door", "door"]}}',
    '{"device_id": "cam-3", "zip_code": "94110", "battery": 12, "event": {"start": "2026-01-01T13:10:00Z", "zones": []}}',
]
"""What three cameras report, as the values of three records."""
REPORT = "device_id string, zip_code string, battery int, event struct<start: timestamp, zones: array<string>>"


def values(spark: SparkSession) -> DataFrame:
    """The reports as records: one column, value, JSON text."""
    return spark.createDataFrame([(report,) for report in REPORTS], "value string")


def reports(spark: SparkSession) -> DataFrame:
    """The reports as rows with the columns of REPORT."""
    return values(spark).select(F.from_json("value", REPORT).alias("report")).select("report.*")


def json_tuple(spark: SparkSession, _: Path) -> DataFrame:
    """Fields of the outermost level of a JSON text, each as text, without a schema."""
    return values(spark).select(F.json_tuple("value", "device_id", "battery").alias("device_id", "battery"))


def get_json_object(spark: SparkSession, _: Path) -> DataFrame:
    """One field at any depth of a JSON text, by its path. Each call parses the text again."""
    return values(spark).select(
        F.get_json_object("value", "$.event.start").alias("start"), F.get_json_object("value", "$.event.zones[0]").alias("first_zone")
    )


def regexp_extract(spark: SparkSession, _: Path) -> DataFrame:
    """A group of a regular expression; empty text where nothing matches."""
    lines = spark.createDataFrame([("10.0.0.7 GET /cameras 200",), ("10.0.0.9 GET /homes 404",), ("garbage",)], "line string")
    pattern = r"^(\S+) (\w+) (\S+) (\d{3})$"
    return lines.select(F.regexp_extract("line", pattern, 3).alias("path"), F.regexp_extract("line", pattern, 4).alias("status"))


def from_csv(spark: SparkSession, _: Path) -> DataFrame:
    """A line of CSV as columns. A value of another type is null, as with from_json."""
    lines = spark.createDataFrame([("cam-1,94107,81",), ('cam-2,"94107",low',)], "line string")
    return lines.select(F.from_csv("line", "device_id string, zip_code string, battery int").alias("row")).select("row.*")


def get_item(spark: SparkSession, _: Path) -> DataFrame:
    """The value of a map's key, and the element of an array at an index from 0. `get` gives null where there is none."""
    fields = values(spark).select(F.from_json("value", "map<string, string>").alias("fields"), F.from_json("value", REPORT).alias("report"))
    return fields.select(
        F.col("fields").getItem("device_id").alias("device_id"), F.get(F.col("report.event.zones"), F.lit(0)).alias("first_zone")
    )


def maps(spark: SparkSession, _: Path) -> DataFrame:
    """Keys, a filter, and a function on the values of a map."""
    levels = F.create_map(F.lit("door"), F.col("battery"), F.lit("garden"), F.col("battery") - 30)
    low = F.map_filter("levels", lambda _, level: level < 20)
    halved = F.transform_values("levels", lambda _, level: level / 2)
    return (
        reports(spark).select(levels.alias("levels")).select(F.map_keys("levels").alias("keys"), low.alias("low"), halved.alias("halved"))
    )


def arrays(spark: SparkSession, _: Path) -> DataFrame:
    """Length, membership, distinct elements, and a function on each element of an array."""
    zones = F.col("event.zones")
    return reports(spark).select(
        F.size(zones).alias("size"),
        F.array_contains(zones, "garden").alias("has_garden"),
        F.array_distinct(zones).alias("distinct"),
        F.transform(zones, F.upper).alias("upper"),
    )


def explode(spark: SparkSession, _: Path) -> DataFrame:
    """A row for each element. explode_outer keeps a row, with null, for an array without elements."""
    return reports(spark).select("device_id", F.explode_outer("event.zones").alias("zone"))


def deserializer(spark: SparkSession, _: Path) -> DataFrame:
    """A deserializer of your own: a function in Python, which SQL can call by its name, and the same by native functions, which is faster."""
    spark.udf.register("reading", _reading, "struct<camera: int, battery: int>")
    records = spark.createDataFrame([(bytes.fromhex("00010051"),), (bytes.fromhex("00020028"),)], "value binary")
    native = F.struct(_number(1).alias("camera"), _number(3).alias("battery"))
    return records.select("value", F.call_udf("reading", "value").alias("in_python"), native.alias("native"))


def _reading(value: bytes) -> tuple[int, int]:
    camera, battery = struct.unpack(">HH", value)
    return camera, battery


def _number(position: int) -> Column:
    """The two bytes of `value` from `position` on, as a number."""
    return F.conv(F.hex(F.substring("value", position, 2)), 16, 10).cast("int")
