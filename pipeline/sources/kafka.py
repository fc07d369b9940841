"""Kafka topics as sources: reads records with their raw bytes, as a stream or as a batch.

Each record gets a clock (infrastructure/kafka/record_clock.py). The watermark follows the latest event, so one event in the year 2099 would make
all others late: decoding leaves out events after `latest_event`. That depends on the record alone, so a batch that runs again, and `verify`,
get the same result.
"""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import KafkaException, TopicCollection
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader

from contract.checkpoints.contents import Offsets, Partition, nested, offsets_of
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.errors import no_answer, no_topic
from infrastructure.kafka.record_clock import CLOCK_MS, LAST_CLOCK_MS, NO_TIMESTAMP_MS
from infrastructure.kafka.topic_ends import EARLIEST, METADATA_SECONDS, NEWEST, first_and_end_offsets, list_offsets, partitions_by_topic
from infrastructure.settings import Settings
from pipeline.spark.kafka_options import kafka_options

RECORD_SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, clock timestamp"
RECORD = tuple(column.split()[0] for column in RECORD_SCHEMA.split(", "))
"""The columns of a record. timestamp is Kafka's; clock: see `clock`."""
ORIGIN = ("topic", "partition", "offset")
"""The columns that identify a record."""
NO_CLOCK = "the record's Kafka timestamp is not of the years 1970 to 2999; expected milliseconds since 1970"
MAX_TIMESTAMP_MS = (2**63 - 1) // 1000
"""Spark counts microseconds in 64 bits, and its Kafka source fails at each record with a later timestamp, whichever columns are read."""
ANSWER_SECONDS = 10
_CREATE_TIME = 0


class TimestampTooLarge(StreamgaugeError):  # noqa: N818 - it names what was found
    """Spark cannot read a record, nor those after it."""

    def __init__(self, partition: Partition, offset: int, timestamp: int) -> None:
        topic, number = partition
        super().__init__(
            f"record {topic}-{number} @ {offset} has Kafka timestamp {timestamp}; Spark reads ms since 1970, up to {MAX_TIMESTAMP_MS:,}, and "
            "fails at nanoseconds. Set message.timestamp.type=LogAppendTime on the topic, delete the partition's records up to this one "
            "(kafka-delete-records), and continue with STREAMGAUGE_FAIL_ON_DATA_LOSS=false"
        )


@dataclass(frozen=True)
class KafkaTopic:
    """A topic.

    is_table: read the topic from its beginning, whatever STREAMGAUGE_STARTING_OFFSETS says: the end alone of a compacted topic is no table.
    reader: the query that reads it in Spark's real-time mode, whose name its consumers carry, so that they can be told apart; None: it is read
    in micro-batches. can_wait: in real-time mode, records may be fetched up to 500 ms late, which takes fewer requests.
    """

    name: str
    is_table: bool = False
    reader: str | None = None
    can_wait: bool = False

    def _reader_options(self, settings: Settings) -> dict[str, str]:
        """Spark's options for the name of its consumers, or for the size of its micro-batches; and how long a request waits for records."""
        if self.reader is None:
            return {"maxOffsetsPerTrigger": str(settings.max_offsets_per_trigger), "kafka.fetch.max.wait.ms": "50"}
        # By default, the broker answers as soon as there is a record, or after 500 ms. A minimum size makes it wait for more records.
        return {"groupIdPrefix": self.reader, **({"kafka.fetch.min.bytes": str(2**20)} if self.can_wait else {})}

    def partitions(self, settings: Settings) -> list[Partition]:
        """The partitions of the topic."""
        return source_partitions(settings, self.name)

    def ids(self, partitions: Sequence[Partition], settings: Settings) -> dict[str, str]:
        """Kafka's id of each topic; a topic that is deleted and recreated has another one. Raises KafkaUnavailable and KafkaRefuses."""
        names = sorted({topic for topic, _ in partitions})
        admin = settings.kafka.admin()  # without a reference, it is closed before it answers
        described = admin.describe_topics(TopicCollection(names), request_timeout=ANSWER_SECONDS)
        try:
            return {name: str(future.result().topic_id) for name, future in described.items()}
        except KafkaException as error:
            raise no_answer(settings.kafka, error) from error

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream of the columns of kafka.RECORD."""
        settings = replace(settings, starting_offsets="earliest") if self.is_table else settings
        return stream_of_records(spark, settings, {**self._reader_options(settings), "subscribe": self.name})

    def streams(self, spark: SparkSession, settings: Settings, shares: Iterable[Sequence[Partition]]) -> list[DataFrame]:
        """A stream as `stream` for each of `shares`. A partition that is in none of them is not read."""
        starts = settings.starting_offsets
        streams = []
        for share in shares:
            assigned = {topic: sorted(map(int, numbers)) for topic, numbers in nested(dict.fromkeys(share, 0)).items()}
            if starts.startswith("{"):  # Spark takes those of the partitions that it reads, and no others
                in_share = {partition: offset for partition, offset in offsets_of(json.loads(starts)).items() if partition in share}
                settings = replace(settings, starting_offsets=json.dumps(nested(in_share)))
            streams.append(stream_of_records(spark, settings, {**self._reader_options(settings), "assign": json.dumps(assigned)}))
        return streams

    def reset_notes(self, settings: Settings) -> list[str]:
        """Notes on records that the topic no longer has, and on where the next run starts."""
        notes = []
        if gone := self.records_gone(settings):
            notes.append(f"topic {self.name} no longer has its first {gone} records: their results are not computed again")
        if settings.starting_offsets != "earliest" and not self.is_table:
            notes.append(f"the next run starts at STREAMGAUGE_STARTING_OFFSETS={settings.starting_offsets}, and not at the earliest record")
        return notes

    def records_gone(self, settings: Settings) -> int:
        """The number of records that the topic has deleted; 0 if Kafka does not answer."""
        with contextlib.suppress(StreamgaugeError):
            return sum(first for first, _ in first_and_end_offsets(settings.kafka, source_partitions(settings, self.name)).values())
        return 0


def stream_of_records(spark: SparkSession, settings: Settings, selection: Mapping[str, str]) -> DataFrame:
    """A stream of RECORD. selection: one of Spark's options subscribe and assign, as {"subscribe": "nest-logs"}, and others."""
    options = {
        "startingOffsets": settings.starting_offsets,
        "failOnDataLoss": str(settings.fail_on_data_loss).lower(),
        # By default, Spark tries three times for a minute each before it reports that it cannot reach Kafka.
        "kafka.request.timeout.ms": "15000",
        "kafka.default.api.timeout.ms": "20000",
        "fetchOffset.numRetries": "1",
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


def clock() -> Column:
    """The clock of a record, a timestamp, from the columns timestamp, timestampType and headers of Spark's Kafka source.

    Null for a Kafka timestamp that is not of the years 1970 to 2999, such as one in microseconds: a watermark would follow it.
    """
    stated = F.filter("headers", lambda header: header["key"] == CLOCK_MS)
    # The cast alone would accept blanks and signs.
    text = F.when(F.size(stated) == 1, stated[0]["value"].cast("string"))
    clock_ms = F.when(text.rlike(r"\A[0-9]{1,14}\z"), text.cast("long"))
    is_stated = (F.col("timestampType") == _CREATE_TIME) & (clock_ms <= LAST_CLOCK_MS)
    record_clock = F.when(is_stated, F.timestamp_millis(clock_ms)).otherwise(F.col("timestamp"))
    first, last = (F.timestamp_millis(F.lit(ms)) for ms in (NO_TIMESTAMP_MS, LAST_CLOCK_MS))
    return F.when(F.col("timestamp").between(first, last), record_clock)


def latest_event(future: str) -> Column:
    """The latest valid event time of a record with column `clock`: `future`, e.g. "10 minutes", after its clock."""
    return F.col("clock") + F.expr(f"interval {future}")


def check_timestamps(settings: Settings, starts: Offsets) -> None:
    """Raises TimestampTooLarge if a record at or after `starts` has a timestamp after MAX_TIMESTAMP_MS, so that Spark cannot read on."""
    admin = settings.kafka.admin()
    try:
        # Kafka may name a deleted record, as long as its file exists.
        newest, first = (list_offsets(admin, starts, spec, METADATA_SECONDS) for spec in (NEWEST, EARLIEST))
    except (KafkaException, TimeoutError):  # Kafka before 3.0 does not say
        return
    for partition, record in newest.items():
        if record.timestamp > MAX_TIMESTAMP_MS and record.offset >= max(starts[partition], first[partition].offset):
            raise TimestampTooLarge(partition, record.offset, record.timestamp)


def source_partitions(settings: Settings, topic: str) -> list[Partition]:
    """Topic and number of each partition of `topic`.

    Raises KafkaUnavailable when it cannot reach Kafka, KafkaRefuses when Kafka denies access, and TopicMissing when there is none.
    """
    topics = partitions_by_topic(settings.kafka)
    if topic not in topics:
        raise no_topic(settings.kafka, topic, METADATA_SECONDS)
    return [(topic, number) for number in topics[topic]]
