"""Where result rows go: a compacted topic in JSON or Avro, the dead letters, an archive of Parquet files or in Delta."""

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.errors import StreamgaugeError
from contract.registry.client import SchemaRegistry
from contract.settings import Settings
from contract.storage.paths import StoragePath
from contract.topics import DEAD_LETTERS, LARGEST_RECORD_BYTES, Topic
from pipeline.formats.confluent_avro import Subject, encoded
from pipeline.formats.json_format import canonical_json, row_json
from pipeline.sources.kafka import kafka_options, source_partitions


class Sink(Protocol):
    """Turns a stream of result rows into a writer that the runner starts."""

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of `rows`, without output mode, trigger and checkpoint. Raises TopicMissing when the topic that it writes to is gone."""


@dataclass(frozen=True)
class CompactedTopic:
    """The last row of each key, in a compacted topic. Writing a row again changes nothing."""

    topic: Topic
    key: tuple[str, ...]

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """Key: canonical JSON of the columns `key`. Value: JSON of all columns."""
        return _to_kafka(keyed_rows(rows, self.key), self.topic, settings)


@dataclass(frozen=True)
class CompactedAvroTopic:
    """As CompactedTopic, with values in Avro, in the Confluent wire format; the project's schema of `subject` is registered at each start."""

    topic: Topic
    key: tuple[str, ...]
    subject: Subject

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """Key: canonical JSON of the columns `key`. Value: all columns.

        Raises RegistryAway when the schema cannot be registered because the registry does not answer.
        """
        schema_id = SchemaRegistry(settings.registry).register(self.subject.name, self.subject.schema)
        value = encoded(F.struct(*rows.columns), schema_id, self.subject.schema)
        return _to_kafka(rows.select(canonical_json(*self.key).alias("key"), value.alias("value")), self.topic, settings)


@dataclass(frozen=True)
class DeadLetterTopic:
    """Rows of dead_letters.dead_letters, to topic `dead-letters`. A batch that runs again writes the same keys again.

    reader: as the letters name it.
    """

    topic: Topic = DEAD_LETTERS
    reader: str = ""

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """Key, value and headers as they are."""
        return _to_kafka(rows, self.topic, settings)


@dataclass(frozen=True)
class Archive:
    """A folder under the lake to which rows are only added, each exactly once, with a folder a value of `partition_by`.

    Columns topic, partition and offset, by these names behind `origin_prefix`, say which record a row comes from.
    """

    path: str
    partition_by: str
    origin_prefix: str = ""

    def folder(self, settings: Settings) -> StoragePath:
        """Where the files are."""
        return settings.lake / self.path

    def _writer(self, rows: DataFrame, settings: Settings, form: str) -> DataStreamWriter:
        return rows.writeStream.format(form).option("path", str(self.folder(settings))).partitionBy(self.partition_by)


@dataclass(frozen=True)
class ParquetArchive(Archive):
    """Parquet files; exactly once holds for readers that go by Spark's metadata log."""

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """Files of all columns. Raises StreamgaugeError for a lake in an object store."""
        if settings.is_lake_remote:
            msg = f"Spark's sink of Parquet files relies on renames that are one step, which {self.folder(settings)} has not; the archive's other form is safe there: run the query of the same name with -delta, as `streamgauge run` does by itself"
            raise StreamgaugeError(msg)
        return self._writer(rows, settings, "parquet")


@dataclass(frozen=True)
class DeltaArchive(Archive):
    """A Delta table; exactly once holds for every reader of Delta."""

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """All columns; one that the table lacks, as the code has become newer, is added."""
        return self._writer(rows, settings, "delta").option("mergeSchema", "true")


def keyed_rows(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Key (canonical JSON of the columns `key`) and value (JSON of all columns), as a compacted topic holds them."""
    return rows.select(canonical_json(*key).alias("key"), row_json(*rows.columns).alias("value"))


def _to_kafka(rows: DataFrame, topic: Topic, settings: Settings) -> DataStreamWriter:
    source_partitions(settings, topic.name)  # Spark's sink waits for a topic that is missing as it does for a Kafka that is away
    options = {
        **kafka_options(settings),
        "topic": topic.name,
        "kafka.max.request.size": str(LARGEST_RECORD_BYTES),
        "includeHeaders": "true",
    }
    return rows.writeStream.format("kafka").options(**options, **{"kafka.linger.ms": "0", "kafka.compression.type": "lz4"})
