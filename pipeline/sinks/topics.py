"""Kafka topics as sinks: compacted topics in JSON or Avro, which hold a table.

JSON is in UTC, ISO 8601 with Z, with explicit nulls. Keys are canonical, so equal keys have equal bytes.
"""

import contextlib
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import or_
from typing import ClassVar, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.create_topics import most_batch_bytes
from contract.topics import ALERTS, MAX_RECORD_BYTES, Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.errors import BatchesRefused
from infrastructure.kafka.result_table import read_keys
from infrastructure.kafka.topic_ends import first_and_end_offsets
from infrastructure.kafka.writing import write_rows
from infrastructure.settings import Settings
from pipeline.formats.confluent_avro import IS_READ, Subject, WriterSchemas, encoded
from pipeline.formats.schema_book import SchemaBook
from pipeline.sinks.sink import Deletion, Sink
from pipeline.sources.kafka import records_from, source_partitions
from pipeline.spark.kafka_options import kafka_options

BATCH_BYTES = 16 * 1024
"""The size up to which a producer puts records into a batch: Kafka's default."""
_BROKEN = "_broken"
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss'Z'", "ignoreNullFields": "false"}


@dataclass(frozen=True)
class TopicSink(Sink):
    """A topic with a record of each row. A batch that runs again writes the same keys."""

    topic: Topic

    @property
    def place(self) -> str:
        return " and ".join(f"topic {topic.name}" for topic in self.topics)

    @property
    def topics(self) -> tuple[Topic, ...]:
        return (self.topic,)

    @abstractmethod
    def records(self, rows: DataFrame) -> DataFrame:
        """The records of `rows`: key, value, and optionally topic and headers."""

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        return self._to_kafka(self.records(rows), settings)

    def _to_kafka(self, records: DataFrame, settings: Settings) -> DataStreamWriter:
        for topic in self.topics:
            # Fail fast: Spark's sink would wait for a missing topic, or one without a leader, as if Kafka were down.
            first_and_end_offsets(settings.kafka, source_partitions(settings, topic.name))
        options = {
            **({} if "topic" in records.columns else {"topic": self.topic.name}),
            "kafka.max.request.size": str(MAX_RECORD_BYTES),
            "kafka.batch.size": str(BATCH_BYTES),
            "kafka.linger.ms": "0",
            "kafka.compression.type": "lz4",
            "includeHeaders": "true",
            **kafka_options(settings),
        }
        for topic in self.topics:
            _check_batches(topic.name, int(options["kafka.batch.size"]), settings)
        return records.writeStream.format("kafka").options(**options)


@dataclass(frozen=True)
class CompactedTopic(TopicSink):
    """A compacted topic with the latest row of each key. Writing a row again changes nothing.

    current: the sink that readers see, if this is the sink of a new version.
    """

    key: tuple[str, ...]
    current: "CompactedTopic | None" = field(default=None, kw_only=True)

    def as_new_version(self, ending: str) -> Self:
        """The sink of a new version, into topics of its own: their names have that ending."""
        return replace(self, topic=_with_ending(self.topic, ending), current=self)

    def records(self, rows: DataFrame) -> DataFrame:
        """Key: canonical JSON of the columns `key`. Value: JSON of all columns; null, a tombstone, if all others are null."""
        return rows.select(canonical_json(*self.key).alias("key"), self._value(rows).alias("value"))

    def _value(self, rows: DataFrame) -> Column:
        other_columns = [name for name in rows.columns if name not in self.key]
        is_present = reduce(or_, (F.col(name).isNotNull() for name in other_columns), F.lit(not other_columns))
        return F.when(is_present, row_json(*rows.columns))

    def table(self, spark: SparkSession, settings: Settings, schema: T.StructType) -> DataFrame:
        """The table in the topic at the time of each evaluation: the last value of each key, without deleted rows.

        schema: the columns of the rows. Evaluation fails at a value of another form. Raises KafkaUnavailable, KafkaRefuses and TopicMissing as
        source_partitions.
        """
        source_partitions(settings, self.topic.name)  # fail fast: Spark would try for minutes
        last = F.max_by("value", "offset").alias("value")  # all records of a key are in one partition
        newest = records_from(spark, settings, {"subscribe": self.topic.name}).groupBy("key").agg(last)
        rows = newest.where("value is not null").select(self.row(schema, self._schemas(settings)).alias("row"))
        return rows.select(*(F.col("row")[name].alias(name) for name in schema.names))

    def row(self, schema: T.StructType, schemas: WriterSchemas | None = None) -> Column:
        """The column `value` as a row. schemas: of values in Avro. Evaluation fails at a value of another form."""
        broken = F.raise_error(F.lit(f"a value in topic {self.topic.name} that is not a row of it"))
        read = F.transform(F.array(self.read(schema, schemas)), lambda row: F.when(row[IS_READ], row).otherwise(broken))
        return read[0].dropFields(IS_READ)

    def read(self, schema: T.StructType, schemas: WriterSchemas | None = None) -> Column:  # noqa: ARG002 - the other format needs them
        """As `row`, plus IS_READ, which is true unless the value is of another form: then it is false or null, and so are columns."""
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN}
        parsed = F.from_json(F.col("value").cast("string"), T.StructType([*schema, T.StructField(_BROKEN, T.StringType())]), options)
        marked = F.transform(F.array(parsed), lambda row: row.withField(IS_READ, row[_BROKEN].isNull() & row.isNotNull()))
        return marked[0].dropFields(_BROKEN)

    def _schemas(self, settings: Settings) -> WriterSchemas | None:  # noqa: ARG002 - as above
        return None

    def deletions(self, settings: Settings) -> list[Deletion]:
        keys_by_topic = {topic.name: read_keys(settings.kafka, topic.name) for topic in self.topics}
        return [
            Deletion(f"topic {name}: its {len(keys)} rows, by null values", partial(write_rows, settings.kafka, name, dict.fromkeys(keys)))
            for name, keys in keys_by_topic.items()
            if keys
        ]


@dataclass(frozen=True)
class CompactedAvroTopic(CompactedTopic):
    """A CompactedTopic with Avro values in the Confluent wire format. Each start registers the project's schema of `subject`."""

    subject: Subject

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """Key: canonical JSON of the columns `key`. Value: Avro of all columns.

        Raises RegistryUnavailable when the schema registry cannot be reached.
        """
        from infrastructure.registry.client import SchemaRegistry  # slow to import

        schema_id = SchemaRegistry(settings.registry).register(self.subject.name, self.subject.schema)
        value = encoded(F.struct(*rows.columns), schema_id, self.subject.schema)
        return self._to_kafka(rows.select(canonical_json(*self.key).alias("key"), value.alias("value")), settings)

    def read(self, schema: T.StructType, schemas: WriterSchemas | None = None) -> Column:  # noqa: ARG002 - the other format needs it
        """All fields that `schemas` have, plus IS_READ."""
        return (schemas or WriterSchemas(self.subject.schema)).event(F.col("value"))

    def _schemas(self, settings: Settings) -> WriterSchemas | None:
        return SchemaBook.of_registry(settings).of(self.subject)


@dataclass(frozen=True)
class CompactedTopicWithAlerts(CompactedTopic):
    """A compacted topic. A row with an `alert` also becomes a record in the compacted topic `alerts`, in the same batch.

    alert_key: the columns of an alert's key. Its value has the fields that `alerts` declares.
    """

    alerts: Topic
    alert_key: tuple[str, ...]

    @property
    def topics(self) -> tuple[Topic, ...]:
        return self.topic, self.alerts

    def as_new_version(self, ending: str) -> Self:
        """The sink of a new version, with alerts of its own."""
        return replace(super().as_new_version(ending), alerts=_with_ending(self.alerts, ending))

    def records(self, rows: DataFrame) -> DataFrame:
        """Topic, key and value, each row's record before its alert."""
        row = _record(self.topic, canonical_json(*self.key), self._value(rows))
        alert = _record(self.alerts, canonical_json(*self.alert_key), row_json(*self.alerts.row.names()))
        both = F.array_compact(F.array(row, F.when(F.col("alert").isNotNull(), alert)))
        return rows.select(F.explode(both).alias("record")).select("record.topic", "record.key", "record.value")


@dataclass(frozen=True)
class AlertsTopic(TopicSink):
    """Writes rows to topic `alerts`, among the alerts on queries.

    key: the columns of the key, `window` among them. The value has the form of every alert: the columns that the topic declares.
    """

    is_kept: ClassVar[bool] = True
    topic: Topic = ALERTS
    key: tuple[str, ...] = field(kw_only=True)
    current: ClassVar[None] = None
    """There is no new version beside the current one: it would send each alert again."""

    def records(self, rows: DataFrame) -> DataFrame:
        """Key: canonical JSON of the columns `key`. Value: JSON of the columns that the topic declares."""
        return rows.select(canonical_json(*self.key).alias("key"), row_json(*self.topic.row.names()).alias("value"))


def _check_batches(topic: str, batch_bytes: int, settings: Settings) -> None:
    """Raises BatchesRefused if the topic refuses batches of this size: Kafka's client would split them again and again, until it dies."""
    most = None
    with contextlib.suppress(StreamgaugeError):  # a client without the right to describe settings can write, too
        most = most_batch_bytes(settings.kafka, topic)
    if most is not None and most < batch_bytes:
        raise BatchesRefused(topic, most, batch_bytes)


def row_json(*columns: str) -> Column:
    """The columns as a JSON object; `window` becomes {"start", "end"}."""
    return F.to_json(F.struct(*columns), _JSON)


def canonical_json(*columns: str) -> Column:
    """The columns as a JSON object with sorted names at every level: {"window":{"end":...,"start":...},"zip_code":...}."""
    ordered = [_canonical(name) for name in sorted(columns)]
    return F.to_json(F.struct(*ordered), _JSON)


def _canonical(name: str) -> Column:
    if name == "window":
        return F.struct(F.col("window.end").alias("end"), F.col("window.start").alias("start")).alias("window")
    return F.col(name)


def _with_ending(topic: Topic, ending: str) -> Topic:
    return replace(topic, plain_name=f"{topic.plain_name}{ending}")


def _record(topic: Topic, key: Column, value: Column) -> Column:
    return F.struct(F.lit(topic.name).alias("topic"), key.alias("key"), value.alias("value"))
