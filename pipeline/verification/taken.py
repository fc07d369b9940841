"""Where a query's records came from, as verification asks for it: what was taken, and to read it again."""

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from pipeline.checkpoint.contents import Offsets
from pipeline.sources.kafka import records_between
from pipeline.verification.prefix import Prefix, prefix_of


class Taken(Protocol):
    """What a query has taken from its source."""

    def prefix(self, committed: int, planned: int) -> Prefix:
        """The prefix at those batches. Raises StreamgaugeError when it is not the source that was read."""

    def between(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """The records of each partition from its offset in `starts` to before its one in `ends`."""

    def strangers(self, rows: DataFrame) -> list[str]:
        """What is wrong with `rows`, which have a column `topic`: that some are of a source that the query has not read."""


@dataclass(frozen=True)
class TakenRecords:
    """Of a topic."""

    spark: SparkSession
    settings: Settings
    checkpoint: CheckpointPlace

    def prefix(self, committed: int, planned: int) -> Prefix:
        """As Kafka has it now."""
        return prefix_of(self.checkpoint, self.settings, committed, planned)

    def between(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """Columns of sources.kafka.RECORD."""
        return records_between(self.spark, self.settings, starts, ends)

    def strangers(self, rows: DataFrame) -> list[str]:  # noqa: ARG002 - as files do
        """None that the comparison does not find: a row behind the prefix is of a partition that Kafka has."""
        return []
