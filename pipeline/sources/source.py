"""What a source is: a topic, or a folder of files."""

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
    """Where a query's records come from. is_in_kafka: whether its partitions are Kafka's, which can be asked for their ends."""

    is_in_kafka: ClassVar[bool]

    @property
    def name(self) -> str:
        """As settings, reports and dead letters write it."""

    def matching(self, pattern: str) -> Self:
        """All topics that match a regular expression instead. Raises StreamgaugeError for a source of files."""

    def partitions(self, settings: Settings) -> list[Partition]:
        """Its partitions. Raises KafkaAway when Kafka does not answer, StreamgaugeError when there is nothing to read."""

    def check(self, checkpoint: "CheckpointUse", partitions: Sequence[Partition], settings: Settings) -> None:
        """Raises StreamgaugeError when the checkpoint belongs to another source."""

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream of the columns of kafka.RECORD, or more."""

    def taken(self, place: CheckpointPlace, spark: SparkSession, settings: Settings) -> "Taken":
        """What a query has taken from it, by its checkpoint."""

    def reset_notes(self, settings: Settings) -> list[str]:
        """What a person should know before a query that reads it recounts from the start."""
