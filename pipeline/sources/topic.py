"""A Kafka topic as a source."""

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from confluent_kafka import KafkaException, TopicCollection
from pyspark.sql import DataFrame, SparkSession

from contract.checkpoints.contents import Partition, nested, offsets_of
from contract.errors import StreamgaugeError
from contract.kafka.errors import no_answer
from contract.kafka.topic_ends import first_and_end_offsets
from contract.settings import Settings
from pipeline.sources.kafka import records_from, source_partitions, stream_of_records

ANSWER_SECONDS = 10


@dataclass(frozen=True)
class KafkaTopic:
    """A topic, or all topics that match the regular expression `pattern`, or some partitions of the topic by their `numbers`.

    is_table: read the topic from its beginning, whatever STREAMGAUGE_STARTING_OFFSETS says: the end alone of a compacted topic is no table.
    reader: the query whose name its consumers carry, so that they can be told apart; None: they have a name of Spark's.
    """

    name: str
    pattern: str | None = None
    numbers: tuple[int, ...] = ()
    is_table: bool = False
    reader: str | None = None

    def part(self, pattern: str | None, numbers: Sequence[int]) -> Self:
        """The source of all topics that match a regular expression, or of these partitions of the topic."""
        return replace(self, pattern=pattern, numbers=tuple(sorted(set(numbers))))

    @property
    def _selection(self) -> dict[str, str]:
        """Spark's option for what it reads."""
        if self.numbers:
            return {"assign": json.dumps({self.name: self.numbers})}
        return {"subscribePattern": self.pattern} if self.pattern else {"subscribe": self.name}

    @property
    def _consumers(self) -> dict[str, str]:
        """Spark's option for the name of its consumers."""
        return {} if self.reader is None else {"groupIdPrefix": self.reader}

    def partitions(self, settings: Settings) -> list[Partition]:
        """The partitions that it reads. Raises StreamgaugeError, too, for a number that the topic does not have."""
        found = source_partitions(settings, self.name, pattern=self.pattern)
        wanted = [(self.name, number) for number in self.numbers] or found
        if missing := [number for which, number in wanted if (which, number) not in found]:
            msg = f"topic {self.name} has no partition {', '.join(map(str, missing))}; its partitions are 0 to {len(found) - 1}"
            raise StreamgaugeError(msg)
        return wanted

    def ids(self, partitions: Sequence[Partition], settings: Settings) -> dict[str, str]:
        """Kafka's id of each topic; a topic that is deleted and recreated has another one. Raises KafkaUnavailable and KafkaRefuses."""
        names = sorted({topic for topic, _ in partitions})
        admin = settings.kafka.admin()  # without a reference, it is closed before it answers
        described = admin.describe_topics(TopicCollection(names), request_timeout=ANSWER_SECONDS)
        try:
            return {name: str(future.result().topic_id) for name, future in described.items()}
        except KafkaException as error:
            raise no_answer(settings.kafka, error) from error

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream of the columns of kafka.RECORD."""
        settings = replace(settings, starting_offsets="earliest") if self.is_table else settings
        return stream_of_records(spark, settings, {**self._consumers, **self._selection})

    def streams(self, spark: SparkSession, settings: Settings, shares: Iterable[Sequence[Partition]]) -> list[DataFrame]:
        """A stream as `stream` for each of `shares`. A partition that is in none of them is not read."""
        starts = settings.starting_offsets
        streams = []
        for share in shares:
            assigned = {topic: sorted(map(int, numbers)) for topic, numbers in nested(dict.fromkeys(share, 0)).items()}
            if starts.startswith("{"):  # Spark takes those of the partitions that it reads, and no others
                own = nested({which: offset for which, offset in offsets_of(json.loads(starts)).items() if which in share})
                settings = replace(settings, starting_offsets=json.dumps(own))
            streams.append(stream_of_records(spark, settings, {**self._consumers, "assign": json.dumps(assigned)}))
        return streams

    def batch_from(self, spark: SparkSession, settings: Settings, offsets: str, ends: str = "latest") -> DataFrame:
        """A batch of the same columns, from `offsets` (JSON of topic, partition and offset, or "earliest") to `ends` (JSON, or "latest")."""
        return records_from(spark, settings, self._selection, offsets, ends)

    def reset_notes(self, settings: Settings) -> list[str]:
        """Notes on records that the topic no longer has, and on where the next run starts."""
        notes = []
        if gone := self.records_gone(settings):
            notes.append(f"topic {self.name} no longer has its first {gone} records: their results are not computed again")
        if settings.starting_offsets != "earliest" and not self.is_table:
            notes.append(f"the next run starts at STREAMGAUGE_STARTING_OFFSETS={settings.starting_offsets}, and not at the earliest record")
        return notes

    def records_gone(self, settings: Settings) -> int:
        """The number of records that the topic has deleted; 0 if Kafka does not answer."""
        with contextlib.suppress(StreamgaugeError):
            return sum(first for first, _ in first_and_end_offsets(settings.kafka, source_partitions(settings, self.name)).values())
        return 0
