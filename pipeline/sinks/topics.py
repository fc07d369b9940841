"""Kafka topics as sinks: compacted topics in JSON or Avro, which hold a table, and the dead letters."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import orjson
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.kafka.result_table import read_keys
from contract.kafka.tombstones import delete_rows
from contract.registry.client import SchemaRegistry, avro_rows
from contract.settings import Settings
from contract.topics import DEAD_LETTERS, LARGEST_RECORD_BYTES, Topic
from pipeline.formats.confluent_avro import Subject, encoded
from pipeline.formats.json_format import canonical_json, row_json
from pipeline.sinks.sink import Deletion, Sink
from pipeline.sources.kafka import kafka_options, source_partitions

if TYPE_CHECKING:
    from pipeline.verification.check import Check
    from pipeline.verification.outcome import Outcome


@dataclass(frozen=True)
class CompactedTopic(Sink):
    """A compacted topic with the latest row of each key. Writing a row again changes nothing."""

    topic: Topic
    key: tuple[str, ...]

    @property
    def place(self) -> str:
        """The topic."""
        return f"topic {self.topic.name}"

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """Key: canonical JSON of the columns `key`. Value: JSON of all columns."""
        return _to_kafka(keyed_rows(rows, self.key), self.topic, settings)

    def verify(self, check: "Check") -> "Outcome":
        """Compares the latest row of each key."""
        from pipeline.verification.compacted_topic import verify
        from pipeline.verification.tables import json_row

        return verify(check, self.topic.name, json_row, json_row)

    def deletions(self, settings: Settings) -> list[Deletion]:
        """A tombstone for each key."""
        keys = read_keys(settings.kafka, self.topic.name)
        what = f"topic {self.topic.name}: its {len(keys)} rows, by null values"
        return [Deletion(what, partial(delete_rows, settings.kafka, self.topic.name, keys))] if keys else []


@dataclass(frozen=True)
class CompactedAvroTopic(CompactedTopic):
    """A CompactedTopic with Avro values in the Confluent wire format. Each start registers the project's schema of `subject`."""

    subject: Subject

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """Key: canonical JSON of the columns `key`. Value: Avro of all columns.

        Raises RegistryAway when the schema registry cannot be reached.
        """
        schema_id = SchemaRegistry(settings.registry).register(self.subject.name, self.subject.schema)
        value = encoded(F.struct(*rows.columns), schema_id, self.subject.schema)
        return _to_kafka(rows.select(canonical_json(*self.key).alias("key"), value.alias("value")), self.topic, settings)

    def verify(self, check: "Check") -> "Outcome":
        """Compares the latest row of each key, decoded."""
        from pipeline.verification.compacted_topic import verify

        return verify(check, self.topic.name, avro_rows(check.registry), orjson.loads)


@dataclass(frozen=True)
class DeadLetterTopic(Sink):
    """Writes rows of dead_letters.dead_letters to topic `dead-letters`. A batch that runs again writes the same keys.

    reader: the query that could not use the records, if that is part of the key.
    """

    topic: Topic = DEAD_LETTERS
    reader: str = ""

    @property
    def place(self) -> str:
        """The topic."""
        return f"topic {self.topic.name}"

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of key, value and headers, unchanged."""
        return _to_kafka(rows, self.topic, settings)

    def verify(self, check: "Check") -> "Outcome":
        """Compares the dead letters of each record."""
        from pipeline.verification.by_origin import verify_letters

        return verify_letters(check, self.topic.name, self.reader)

    def reset_notes(self) -> list[str]:
        """Notes that a reset keeps the dead letters."""
        return [f"the dead letters stay in topic {self.topic.name}; the next run writes them again, with the same keys"]


def keyed_rows(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Key (canonical JSON of the columns `key`) and value (JSON of all columns), the format of compacted topics."""
    return rows.select(canonical_json(*key).alias("key"), row_json(*rows.columns).alias("value"))


def _to_kafka(rows: DataFrame, topic: Topic, settings: Settings) -> DataStreamWriter:
    source_partitions(settings, topic.name)  # fail fast: Spark's sink would wait for a missing topic as if Kafka were down
    options = {
        **kafka_options(settings),
        "topic": topic.name,
        "kafka.max.request.size": str(LARGEST_RECORD_BYTES),
        "includeHeaders": "true",
    }
    return rows.writeStream.format("kafka").options(**options, **{"kafka.linger.ms": "0", "kafka.compression.type": "lz4"})
