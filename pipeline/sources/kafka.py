"""Reads Kafka records with their raw bytes, as a stream or as a batch."""

import re
from collections.abc import Mapping

from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from contract.checkpoints.contents import Offsets
from contract.errors import StreamgaugeError
from contract.kafka.errors import no_topic
from contract.kafka.topic_ends import EARLIEST, METADATA_SECONDS, NEWEST, list_offsets, partitions_by_topic
from contract.settings import Settings
from pipeline.formats.record_clock import clock
from pipeline.spark.kafka_options import kafka_options

RECORD_SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, clock timestamp"
RECORD = tuple(column.split()[0] for column in RECORD_SCHEMA.split(", "))
"""The columns of a record. timestamp is Kafka's; clock: see record_clock."""
ORIGIN = ("topic", "partition", "offset")
"""The columns that identify a record."""
MAX_TIMESTAMP_MS = (2**63 - 1) // 1000
"""Spark counts microseconds in 64 bits, and its Kafka source fails at each record with a later timestamp, whichever columns are read."""


def stream_of_records(spark: SparkSession, settings: Settings, selection: Mapping[str, str]) -> DataFrame:
    """A stream of RECORD. selection: one of Spark's options subscribe, subscribePattern and assign, as {"subscribe": "nest-logs"}."""
    options = {
        "startingOffsets": settings.starting_offsets,
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        "kafka.fetch.max.wait.ms": "50",
        # By default, Spark tries three times for a minute each before it reports that it cannot reach Kafka.
        "kafka.request.timeout.ms": "15000",
        "kafka.default.api.timeout.ms": "20000",
        "fetchOffset.numRetries": "1",
        **({} if settings.real_time else {"maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger)}),
        **selection,
    }
    return _loaded(spark.readStream, settings, options).select(*RECORD)


def records_from(
    spark: SparkSession, settings: Settings, selection: Mapping[str, str], offsets: str = "earliest", ends: str = "latest"
) -> DataFrame:
    """A batch of RECORD, from `offsets` (JSON of topic, partition and offset, or "earliest") to `ends` (JSON, or "latest").

    selection: see stream_of_records.
    """
    options = {**selection, "startingOffsets": offsets, "endingOffsets": ends, "failOnDataLoss": "false"}
    return _loaded(spark.read, settings, options).select(*RECORD)


def _loaded(reader: DataFrameReader | DataStreamReader, settings: Settings, options: Mapping[str, str]) -> DataFrame:
    common = {
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    loaded = reader.format("kafka").options(**{**common, **options, **kafka_options(settings)}).load()
    return loaded.withColumn("clock", clock())


def check_timestamps(settings: Settings, starts: Offsets) -> None:
    """Raises StreamgaugeError if a record at or after `starts` has a timestamp after MAX_TIMESTAMP_MS, so that Spark cannot read on."""
    admin = settings.kafka.admin()
    try:
        # Kafka may name a deleted record, as long as its file exists.
        newest, first = (list_offsets(admin, starts, spec, METADATA_SECONDS) for spec in (NEWEST, EARLIEST))
    except (KafkaException, TimeoutError):  # Kafka before 3.0 does not say
        return
    for which, found in newest.items():
        if found.timestamp > MAX_TIMESTAMP_MS and found.offset >= max(starts[which], first[which].offset):
            topic, number = which
            msg = f"record {topic}-{number} @ {found.offset} has Kafka timestamp {found.timestamp}; Spark reads ms since 1970, up to {MAX_TIMESTAMP_MS:,}, and fails at nanoseconds. Set message.timestamp.type=LogAppendTime on the topic, delete the partition's records up to this one (kafka-delete-records), and continue with STREAMGAUGE_FAIL_ON_DATA_LOSS=false"
            raise StreamgaugeError(msg)


def source_partitions(settings: Settings, topic: str, *, pattern: str | None = None) -> list[tuple[str, int]]:
    """Topic and number of each partition of `topic`, or of the topics that match `pattern`.

    Raises KafkaUnavailable when it cannot reach Kafka, KafkaRefuses when Kafka denies access, and TopicMissing when there is none.
    """
    topics = partitions_by_topic(settings.kafka)
    chosen = sorted(name for name in topics if (re.fullmatch(pattern, name) if pattern else name == topic))
    if not chosen:
        raise no_topic(settings.kafka, pattern or topic, METADATA_SECONDS)
    return [(name, number) for name in chosen for number in topics[name]]
