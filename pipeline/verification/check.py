"""One check of one query: the input of every sink's verification."""

from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from pipeline.checkpoint.contents import Checkpoint, Offsets
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.query import Query
from pipeline.sources.files import Files
from pipeline.verification.files import SourceFiles
from pipeline.verification.outcome import Outcome
from pipeline.verification.prefix import Prefix, SourceRecords


@dataclass(frozen=True)
class Check:
    """The query to check. schemas: of the source's values if they are Avro. outcome: the findings so far."""

    spark: SparkSession
    settings: Settings
    query: Query
    schemas: WriterSchemas | None
    outcome: Outcome

    @property
    def place(self) -> CheckpointPlace:
        """The query's checkpoint."""
        return self.query.checkpoint_name.place(self.settings)

    @cached_property
    def source(self) -> SourceRecords | SourceFiles:
        """The records that the query has read."""
        if isinstance(self.query.source, Files):
            return SourceFiles(self.spark, self.query.source, self.place)
        return SourceRecords(self.spark, self.settings, self.place)

    def committed(self) -> Prefix:
        """The prefix at the last committed batch."""
        committed = Checkpoint(self.place.folder).last_committed
        return self.source.prefix(committed, committed)

    def result(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """The result rows of the records from `starts` up to, not including, `ends`."""
        return self.query.result(self.source.between(starts, ends), self.schemas)

    def found(self, prefix: Prefix, **found: object) -> Outcome:
        """The outcome with the fields in `found` set."""
        notes = [*self.outcome.notes, *prefix.notes, *found.pop("notes", ())]  # type: ignore[misc]
        return replace(self.outcome, batch=prefix.committed, records=prefix.records, notes=notes, **found)  # type: ignore[arg-type]
