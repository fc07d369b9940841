"""The table in a compacted topic up to given offsets, as raw bytes."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from confluent_kafka import Message

from contract.kafka.cluster import KafkaCluster
from contract.kafka.result_table import TableReader
from contract.settings import Settings
from contract.topics import Topic
from pipeline.checkpoint.contents import Offsets
from pipeline.sources.kafka import first_and_end_offsets, source_partitions


@dataclass
class TopicTable:
    """The last value of each key below the limits. A key whose last record is a tombstone is absent. keyless: number of records without a key."""

    values: dict[bytes, bytes] = field(default_factory=dict)
    keyless: int = 0


class _LimitedReader(TableReader):
    """Reads a topic into a TopicTable."""

    def __init__(self, kafka: KafkaCluster, topic: str, limits: Offsets, found: TopicTable) -> None:
        super().__init__(kafka, topic)
        self._limits, self._found = limits, found

    def _apply(self, message: Message) -> None:
        key, value, found = message.key(), message.value(), self._found
        if (message.offset() or 0) >= self._limits.get((self._topic, message.partition() or 0), 0):
            return
        if key is None:
            found.keyless += 1
        elif value is None:
            found.values.pop(key, None)
        else:
            found.values[key] = value


def ends_of(topics: Iterable[Topic], settings: Settings) -> Offsets:
    """The end offsets of `topics`. Raises as first_and_end_offsets and source_partitions."""
    partitions = [partition for topic in topics for partition in source_partitions(settings, topic.name)]
    return {which: end for which, (_, end) in first_and_end_offsets(settings, partitions).items()}


def read_table(settings: Settings, limits: Offsets) -> TopicTable:
    """Reads each partition of `limits` from its beginning to the limit.

    Raises StreamgaugeError as TableReader.read_to_end.
    """
    found = TopicTable()
    for topic in sorted({topic for topic, _ in limits}):
        with _LimitedReader(settings.kafka, topic, limits, found).opened() as reader:
            reader.read_to_end()
    return found
