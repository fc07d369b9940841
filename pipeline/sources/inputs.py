"""What a query reads, a topic or a folder of files, asked in one way by whoever runs it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.topics import DEAD_LETTERS
from pipeline.checkpoint.contents import Partition
from pipeline.checkpoint.use import CheckpointUse
from pipeline.query import Query
from pipeline.sources.files import Files
from pipeline.sources.kafka import source_partitions, stream_of_records


class Input(Protocol):
    """What a run asks of it. is_in_kafka: whether its partitions are Kafka's, which can be asked for their ends."""

    is_in_kafka: ClassVar[bool]

    def partitions(self, settings: Settings) -> list[Partition]:
        """Those that there are. Raises KafkaAway when Kafka does not answer, StreamgaugeError when there is nothing to read."""

    def check(self, checkpoint: CheckpointUse, partitions: Iterable[Partition], settings: Settings) -> None:
        """Raises StreamgaugeError when the checkpoint is of another one."""

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """A stream of the columns of sources.RECORD, or more."""


@dataclass(frozen=True)
class TopicInput:
    """A topic, or with `pattern`, a regular expression, all topics that match."""

    topic: str
    pattern: str | None = None
    is_in_kafka: ClassVar[bool] = True

    def partitions(self, settings: Settings) -> list[Partition]:
        """Of all its topics."""
        return source_partitions(settings, self.topic, pattern=self.pattern)

    def check(self, checkpoint: CheckpointUse, partitions: Iterable[Partition], settings: Settings) -> None:
        """Goes by Kafka's own ids of the topics."""
        checkpoint.check_topics({topic for topic, _ in partitions}, settings)

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """The columns of sources.RECORD."""
        return stream_of_records(spark, settings, self.topic, pattern=self.pattern)


@dataclass(frozen=True)
class FilesInput:
    """A folder of files. Results and dead letters go to Kafka nevertheless, so a run waits for it."""

    files: Files
    is_in_kafka: ClassVar[bool] = False

    def partitions(self, settings: Settings) -> list[Partition]:
        """One, as the order of files is one."""
        source_partitions(settings, DEAD_LETTERS.name)
        self.files.check()
        return [(self.files.name, 0)]

    def check(self, checkpoint: CheckpointUse, partitions: Iterable[Partition], settings: Settings) -> None:  # noqa: ARG002 - as every input
        """Goes by the folder's path."""
        checkpoint.check_files(self.files.name)

    def stream(self, spark: SparkSession, settings: Settings) -> DataFrame:
        """The columns of sources.RECORD, and PROBLEM."""
        return self.files.stream(spark, settings)


def input_of(query: Query, pattern: str | None = None) -> Input:
    """What `query` reads. Raises StreamgaugeError for a pattern of topics when it reads files."""
    if not isinstance(query.source, Files):
        return TopicInput(query.source.name, pattern)
    if pattern is not None:
        msg = f"--topic-pattern {pattern} is for topics, and query {query.name} reads {query.source.name}; unset STREAMGAUGE_NEST_SOURCE, or leave the pattern out"
        raise StreamgaugeError(msg)
    return FilesInput(query.source)
