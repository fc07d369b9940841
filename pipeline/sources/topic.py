"""A Kafka topic as a source."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from pyspark.sql import DataFrame, SparkSession

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from pipeline.checkpoint.contents import Partition
from pipeline.checkpoint.use import CheckpointUse
from pipeline.sources.kafka import records_from, source_partitions, stream_of_records

if TYPE_CHECKING:
    from pipeline.verification.taken import Taken

ANSWER_SECONDS = 5


@dataclass(frozen=True)
class KafkaTopic:
    """A topic, or all topics that match the regular expression `pattern`, or some partitions of the topic by their `numbers`."""

    name: str
    pattern: str | None = None
    numbers: tuple[int, ...] = ()
    is_in_kafka: ClassVar[bool] = True

    def part(self, pattern: str | None, numbers: Sequence[int]) -> Self:
        """The source of all topics that match a regular expression, or of these partitions of the topic."""
        return replace(self, pattern=pattern, numbers=tuple(sorted(set(numbers))))

    @property
    def _selection(self) -> dict[str, str]:
        """Spark's option for what it reads."""
        if self.numbers:
            return {"assign": json.dumps({self.name: self.numbers})}
        return {"subscribePattern": self.pattern} if self.pattern else {"subscribe": self.name}

    def partitions(self, settings: Settings) -> list[Partition]:
        """The partitions that it reads. Raises StreamgaugeError, too, for a number that the topic does not have."""
        found = source_partitions(settings, self.name, pattern=self.pattern)
        wanted = [(self.name, number) for number in self.numbers] or found
        if missing := [number for which, number in wanted if (which, number) not in found]:
            msg = f"topic {self.name} has no partition {', '.join(map(str, missing))}; its partitions are 0 to {len(found) - 1}"
            raise StreamgaugeError(msg)
        return wanted

    def check(self, checkpoint: CheckpointUse, partitions: Sequence[Partition], settings: Settings) -> None:
        """Compares Kafka's topic ids."""
        checkpoint.check_topics({topic for topic, _ in partitions}, settings)

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream of the columns of kafka.RECORD."""
        return stream_of_records(spark, settings, self._selection)

    def batch_from(self, spark: SparkSession, settings: Settings, offsets: str, ends: str = "latest") -> DataFrame:
        """A batch of the same columns, from `offsets` (JSON of topic, partition and offset, or "earliest") to `ends` (JSON, or "latest")."""
        return records_from(spark, settings, self._selection, offsets, ends)

    def taken(self, place: CheckpointPlace, spark: SparkSession, settings: Settings) -> "Taken":
        """The records that the query has read, as Kafka has them now."""
        from pipeline.verification.taken import TakenRecords

        return TakenRecords(spark, settings, place)

    def reset_notes(self, settings: Settings) -> list[str]:
        """Notes on records that the topic no longer has, and on where the next run starts."""
        notes = []
        if gone := self._records_gone(settings):
            notes.append(f"topic {self.name} no longer has its first {gone} records: their results are not computed again")
        if settings.starting_offsets != "earliest":
            notes.append(f"the next run starts at STREAMGAUGE_STARTING_OFFSETS={settings.starting_offsets}, and not at the earliest record")
        return notes

    def _records_gone(self, settings: Settings) -> int:
        """The number of records that the topic has deleted; 0 if Kafka does not answer."""
        admin = settings.kafka.admin()
        try:
            partitions = admin.list_topics(self.name, timeout=ANSWER_SECONDS).topics[self.name].partitions
            earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
            asked = {TopicPartition(self.name, number): earliest for number in partitions}
            return sum(first.result(ANSWER_SECONDS).offset for first in admin.list_offsets(asked, request_timeout=ANSWER_SECONDS).values())
        except (KafkaException, TimeoutError):
            return 0


@dataclass(frozen=True)
class TableTopic(KafkaTopic):
    """A compacted topic as a table. It is read from its beginning, whatever STREAMGAUGE_STARTING_OFFSETS says: its end alone is no table."""

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream of the columns of kafka.RECORD, from the earliest one."""
        return super().stream(spark, _from_earliest(settings))

    def reset_notes(self, settings: Settings) -> list[str]:
        """Notes on records that the topic no longer has."""
        return super().reset_notes(_from_earliest(settings))


def _from_earliest(settings: Settings) -> Settings:
    return replace(settings, starting_offsets="earliest")
