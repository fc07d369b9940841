"""The table in a compacted topic up to given offsets, as raw bytes."""

from collections.abc import Iterable

from confluent_kafka import Message

from contract.kafka.cluster import KafkaCluster
from contract.kafka.result_table import TableReader
from contract.settings import Settings
from contract.topics import Topic
from pipeline.checkpoint.contents import Offsets
from pipeline.sources.kafka import first_and_end_offsets, source_partitions


class _LimitedReader(TableReader):
    """Reads the values below `limits` into `found`, a tombstone as None."""

    def __init__(self, kafka: KafkaCluster, topic: str, limits: Offsets, found: dict[bytes, bytes | None]) -> None:
        super().__init__(kafka, topic)
        self._limits, self._found = limits, found

    def _apply(self, message: Message) -> None:
        if (message.offset() or 0) < self._limits.get((self._topic, message.partition() or 0), 0):
            self._found[message.key() or b""] = message.value()


def ends_of(topics: Iterable[Topic], settings: Settings) -> Offsets:
    """The end offsets of `topics`. Raises as first_and_end_offsets and source_partitions."""
    partitions = [partition for topic in topics for partition in source_partitions(settings, topic.name)]
    return {which: end for which, (_, end) in first_and_end_offsets(settings, partitions).items()}


def read_table(settings: Settings, limits: Offsets) -> dict[bytes, bytes]:
    """The last value of each key below the limits. A record without a key, which belongs to no row, has an empty one here.

    Raises StreamgaugeError as TableReader.read_to_end.
    """
    found: dict[bytes, bytes | None] = {}
    for topic in sorted({topic for topic, _ in limits}):
        with _LimitedReader(settings.kafka, topic, limits, found).opened() as reader:
            reader.read_to_end()
    return {key: value for key, value in found.items() if value is not None}
