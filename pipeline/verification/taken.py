"""The interface by which verification accesses the records that a query has read."""

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from pipeline.checkpoint.contents import Offsets
from pipeline.sources.kafka import records_between
from pipeline.verification.prefix import Prefix, prefix_of


class Taken(Protocol):
    """The records that a query has read from its source."""

    def prefix(self, committed: int, planned: int) -> Prefix:
        """The prefix up to those batches. Raises StreamgaugeError when the source is not the one that was read."""

    def between(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """The records of each partition from its offset in `starts` up to, not including, its offset in `ends`."""

    def strangers(self, rows: DataFrame) -> list[str]:
        """Lines about `rows` (with a column `topic`) of sources that the query has not read. Empty if there are none."""


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

    def strangers(self, rows: DataFrame) -> list[str]:  # noqa: ARG002 - as files do
        """Always empty: `compare` already finds rows of foreign partitions."""
        return []
