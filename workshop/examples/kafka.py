"""A topic as a batch. These examples need Kafka, `streamgauge up`, and records in `nest-logs`; they write nothing."""

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contract.domains.nest import NEST_LOGS
from contract.topics import topic_prefix
from infrastructure.settings import Settings
from pipeline.domains.nest import camera_stats
from pipeline.domains.nest_documents import DEVICE_LOCATIONS, sightings
from pipeline.sources.kafka import records_from
from pipeline.spark.kafka_options import kafka_options


def kafka_batch(spark: SparkSession, folder: Path) -> DataFrame:
    """The functions of the query `nest-camera-stats` on a fixed range of offsets. A batch has no watermark, so no event is too late."""
    settings = Settings.from_environment()
    topic = NEST_LOGS.name
    start, end = json.dumps({topic: {"0": 0, "1": 0, "2": 0}}), json.dumps({topic: {"0": 50, "1": 50, "2": 50}})
    records = records_from(spark, settings, {"subscribe": topic}, start, end)
    counts = camera_stats(sightings(records, settings.future), DEVICE_LOCATIONS.load(spark, settings))
    return counts.orderBy("window", F.desc("count"), "zip_code").limit(3)


def kafka_assign(spark: SparkSession, folder: Path) -> DataFrame:
    """Some partitions of a topic, by their numbers."""
    return _records(spark, "assign", json.dumps({NEST_LOGS.name: [0, 2]}))


def kafka_subscribe_pattern(spark: SparkSession, folder: Path) -> DataFrame:
    """All topics whose names match a regular expression."""
    return _records(spark, "subscribePattern", f"{topic_prefix()}nest-l.*")


def _records(spark: SparkSession, option: str, topics: str) -> DataFrame:
    """How many records are in each partition. With `readStream` instead of `read`, the same options give a stream."""
    records = spark.read.format("kafka").options(**kafka_options(Settings.from_environment())).option(option, topics).load()
    return records.groupBy("topic", "partition").count().orderBy("topic", "partition")
