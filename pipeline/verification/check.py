"""One check of one query: the input of every sink's verification."""

from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from contract.registry.client import SchemaRegistry
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from pipeline.checkpoint.contents import Checkpoint, Offsets
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.query import Query
from pipeline.sources.files import Files
from pipeline.sources.kafka import records_between
from pipeline.verification.files import TakenFiles
from pipeline.verification.outcome import Outcome
from pipeline.verification.prefix import Prefix, prefix_of


@dataclass(frozen=True)
class TakenRecords:
    """The records read from a topic."""

    spark: SparkSession
    settings: Settings
    checkpoint: CheckpointPlace

    def prefix(self, committed: int, planned: int) -> Prefix:
        """The prefix, limited to the records that Kafka still has."""
        return prefix_of(self.checkpoint, self.settings, committed, planned)

    def between(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """Columns of sources.kafka.RECORD."""
        return records_between(self.spark, self.settings, starts, ends)

    def strangers(self, rows: DataFrame) -> list[str]:  # noqa: ARG002 - as of files
        """Always empty: `compare` already finds rows of foreign partitions."""
        return []


@dataclass(frozen=True)
class Check:
    """The query to check. schemas: of the source's values if they are Avro. outcome: the findings so far."""

    spark: SparkSession
    settings: Settings
    registry: SchemaRegistry
    query: Query
    schemas: WriterSchemas | None
    outcome: Outcome

    @property
    def place(self) -> CheckpointPlace:
        """The query's checkpoint."""
        return self.query.checkpoint_name.place(self.settings)

    @cached_property
    def taken(self) -> TakenRecords | TakenFiles:
        """The records that the query has read."""
        if isinstance(self.query.source, Files):
            return TakenFiles(self.spark, self.query.source, self.place)
        return TakenRecords(self.spark, self.settings, self.place)

    def committed(self) -> Prefix:
        """The prefix at the last committed batch."""
        committed = Checkpoint(self.place.folder).last_committed
        return self.taken.prefix(committed, committed)

    def result(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """The result rows of the records from `starts` up to, not including, `ends`."""
        return self.query.result(self.taken.between(starts, ends), self.schemas)

    def found(self, prefix: Prefix, **found: object) -> Outcome:
        """The outcome with the fields in `found` set."""
        notes = [*self.outcome.notes, *prefix.notes, *found.pop("notes", ())]  # type: ignore[misc]
        return replace(self.outcome, batch=prefix.committed, records=prefix.records, cuts=prefix.cuts, notes=notes, **found)  # type: ignore[arg-type]
