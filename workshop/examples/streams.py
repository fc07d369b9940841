"""Streams: sources that need no server, sinks to look at, and an aggregation without a window."""

import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contract.storage.data_files import data_file
from pipeline.sources.static_tables import fields_of
from workshop.examples.functions import REPORT, REPORTS

CLOUDTRAIL = (
    "Records array<struct<eventTime: timestamp, eventSource: string, eventName: string, awsRegion: string, sourceIPAddress: string, "
    "userIdentity: struct<type: string, userName: string>, errorCode: string>>"
)


def folder_stream(spark: SparkSession, folder: Path) -> DataFrame:
    """A stream of the reports, by Spark's own source of JSON files: a line is a document, a new file is new data.

    A line that is not JSON becomes a row of nulls. The project's own source of files, see docs/files.md, keeps it as a dead letter.
    """
    landing = folder / "landing"
    landing.mkdir()
    for number, report in enumerate(REPORTS):
        file = landing / f"{number}.json"
        file.write_text(f"{report}\n")
        os.utime(file, (number, number))  # Spark takes the oldest first
    return spark.readStream.schema(fields_of(REPORT)).option("maxFilesPerTrigger", 1).json(str(landing))


def memory_sink(spark: SparkSession, folder: Path) -> DataFrame:
    """Files of JSON lines as a stream, by Spark's own source, and its rows in a table in the driver's memory, named after the query."""
    stream = folder_stream(spark, folder).where("battery < 50").select("device_id", "battery")
    stream.writeStream.format("memory").queryName("low_batteries").trigger(availableNow=True).start().awaitTermination()
    return spark.table("low_batteries").orderBy("device_id")


def console_sink(spark: SparkSession, folder: Path) -> None:
    """The rows of each batch on standard output. One file is one batch here."""
    stream = folder_stream(spark, folder).select("device_id", "zip_code")
    stream.writeStream.format("console").trigger(availableNow=True).start().awaitTermination()


def running_aggregation(spark: SparkSession, folder: Path) -> DataFrame:
    """A count without a window: mode complete writes every group in every batch. State grows with the groups, forever."""
    counts = folder_stream(spark, folder).groupBy("zip_code").count()
    writer = counts.writeStream.format("memory").queryName("counts").outputMode("complete")
    writer.trigger(availableNow=True).start().awaitTermination()
    return spark.table("counts").orderBy("zip_code")


def cloudtrail(spark: SparkSession, folder: Path) -> DataFrame:
    """Events in an array of one large object per file, as AWS CloudTrail delivers them: a document spans lines, and each event becomes a row."""
    landing = folder / "trail"
    landing.mkdir()
    (landing / "events.json").write_bytes(data_file("examples/cloudtrail.json").read_bytes())
    files = spark.readStream.schema(fields_of(CLOUDTRAIL)).option("multiLine", True).json(str(landing))  # noqa: FBT003
    events = files.select(F.explode("Records").alias("event")).select("event.*")
    hourly = events.groupBy(F.window("eventTime", "1 hour").start.alias("hour"), "eventSource").agg(
        F.count("*").alias("events"), F.count("errorCode").alias("failed")
    )
    hourly.writeStream.format("memory").queryName("trail").outputMode("complete").trigger(availableNow=True).start().awaitTermination()
    return spark.table("trail").orderBy("hour", "eventSource")
