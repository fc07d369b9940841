"""The interface of sources: a topic, or a folder of files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from pyspark.sql import DataFrame, SparkSession

from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from pipeline.checkpoint.contents import Partition

if TYPE_CHECKING:
    from pipeline.checkpoint.use import CheckpointUse
    from pipeline.verification.taken import Taken


class Source(Protocol):
    """Where a query reads its records. is_in_kafka: whether its partitions are Kafka partitions, with end offsets to query."""

    is_in_kafka: ClassVar[bool]

    @property
    def name(self) -> str:
        """The name in settings, reports and dead letters."""

    def part(self, pattern: str | None, numbers: Sequence[int]) -> Self:
        """The source of all topics that match a regular expression, or of these partitions of the topic.

        Raises StreamgaugeError for a source of files.
        """

    def partitions(self, settings: Settings) -> list[Partition]:
        """Its partitions. Raises KafkaAway when it cannot reach Kafka, StreamgaugeError when there is nothing to read."""

    def check(self, checkpoint: "CheckpointUse", partitions: Sequence[Partition], settings: Settings) -> None:
        """Raises StreamgaugeError when the checkpoint belongs to another source."""

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream with at least the columns of kafka.RECORD."""

    def taken(self, place: CheckpointPlace, spark: SparkSession, settings: Settings) -> "Taken":
        """The records that a query has read from it, by its checkpoint."""

    def reset_notes(self, settings: Settings) -> list[str]:
        """Notes for the user before a reset of a query that reads it."""
