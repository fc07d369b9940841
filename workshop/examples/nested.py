"""Nested data: into structs and out of them, and JSON text both ways."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from workshop.examples.functions import REPORT, reports, values


def dot(spark: SparkSession, _: Path) -> DataFrame:
    """A field of a struct, by its path."""
    return reports(spark).select("device_id", "event.start")


def star(spark: SparkSession, _: Path) -> DataFrame:
    """All fields of a struct, each as a column: the way to flatten one."""
    return reports(spark).select("device_id", "event.*")


def struct(spark: SparkSession, _: Path) -> DataFrame:
    """Columns as the fields of one struct. A field can have a new name."""
    place = F.struct("zip_code", F.col("device_id").alias("camera"))
    return reports(spark).select(place.alias("place"), "battery")


def struct_star(spark: SparkSession, _: Path) -> DataFrame:
    """All columns as one struct: with max, the whole row that has the largest first field of a group."""
    newest = F.max(F.struct("event.start", "*")).alias("newest")
    return reports(spark).groupBy("zip_code").agg(newest).select("zip_code", "newest.device_id", "newest.battery")


def explode_map(spark: SparkSession, _: Path) -> DataFrame:
    """A row for each key of a map, in the columns key and value: for an object whose keys are data, such as ids."""
    document = '{"cam-1": {"battery": 81}, "cam-2": {"battery": 40}}'
    cameras = spark.createDataFrame([(document,)], "value string").select(
        F.from_json("value", "map<string, struct<battery: int>>").alias("cameras")
    )
    return cameras.select(F.explode("cameras")).select(F.col("key").alias("device_id"), "value.battery")


def array_field(spark: SparkSession, _: Path) -> DataFrame:
    """One field of each element of an array of structs, as an array."""
    document = '{"home": "a", "cameras": [{"id": "cam-1", "battery": 81}, {"id": "cam-2", "battery": 40}]}'
    homes = spark.createDataFrame([(document,)], "value string")
    home = F.from_json("value", "home string, cameras array<struct<id: string, battery: int>>")
    return homes.select(home.alias("home")).select("home.home", F.col("home.cameras.id").alias("ids"))


def from_json(spark: SparkSession, _: Path) -> DataFrame:
    """A JSON text as a struct. Text that is not JSON, and a value of another type, become null: keep the text, and look at it."""
    broken = spark.createDataFrame([('{"device_id": "cam-4", "battery": "low"}',), ("garbage",)], "value string")
    parsed = values(spark).union(broken).select(F.from_json("value", REPORT).alias("report"))
    return parsed.select("report.device_id", "report.battery")


def to_json(spark: SparkSession, _: Path) -> DataFrame:
    """A struct as JSON text, for instance as the value of a record. Fields that are null are left out."""
    return reports(spark).select(F.to_json(F.struct("device_id", "event")).alias("value"))


def json_part(spark: SparkSession, _: Path) -> DataFrame:
    """A part of a JSON text that stays text, because the schema says string: to parse it later, or to pass it on as it came."""
    return values(spark).select(F.from_json("value", "device_id string, event string").alias("report")).select("report.*")
