"""Reads the records of a topic: those that are there in order of time, and then those that arrive."""

import heapq
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar

from confluent_kafka import Message, TopicPartition

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.errors import TopicMissing
from infrastructure.kafka.result_table import TableReader
from infrastructure.kafka.topic_ends import partitions_by_topic
from streamgauge.records.start import Start

MOST_NAMES = 20
MOST_WAITING_BYTES = 4 * 1024 * 1024
"""A partition with more waiting records, because they are newer than those of others, is paused."""
_BYTES_OF_A_MESSAGE = 1000
"""The approximate memory that Python needs for a message in addition to its value."""


class TopicRecords(TableReader):
    """The records of a topic, or of some of its partitions. Unlike a table, it keeps all records of a key."""

    # A partition that is resumed waits for the request under way to be answered.
    _client_options: ClassVar[Mapping[str, Any]] = {"fetch.wait.max.ms": 50}

    def __init__(self, kafka: KafkaCluster, topic: str, start: Start, partitions: Collection[int] = ()) -> None:
        super().__init__(kafka, topic)
        self._start, self._only = start, frozenset(partitions)
        self.offsets: dict[int, tuple[int, int]] = {}
        """The first offset and the end offset, by partition, from when the reader was opened."""
        self._waiting: dict[int, deque[Message]] = {}
        self._waiting_bytes: dict[int, int] = {}
        self._paused: set[int] = set()

    def present(self) -> Iterator[Message]:
        """The records that were there when the reader was opened: of a partition by offset, across partitions by Kafka's timestamp.

        Raises StreamgaugeError as `read_to_end`.
        """
        return heapq.merge(*(self._present(partition) for partition in self.offsets), key=_time)

    def arriving(self) -> Iterator[Message]:
        """The records since then, as they arrive, and without end. After `present`. Raises StreamgaugeError as `poll` and `check`."""
        while True:
            arrived = [self._next(partition) for partition, waiting in self._waiting.items() for _ in range(len(waiting))]
            yield from sorted(arrived, key=_time)
            for partition in tuple(self._paused):
                self._resume(partition)
            self.poll(timeout_seconds=0.5)
            self.check_when_due()

    @property
    def extent(self) -> str:
        """The offsets from when the reader was opened, for a message."""
        ranges = [f"{first} to {end - 1} in partition {partition}" for partition, (first, end) in self.offsets.items() if first < end]
        return f"offsets {', '.join(ranges)}" if ranges else "no records"

    def _present(self, partition: int) -> Iterator[Message]:
        waiting, (_, end) = self._waiting[partition], self.offsets[partition]
        while True:
            while waiting and (waiting[0].offset() or 0) < end:
                yield self._next(partition)
            if waiting or partition not in self._pending_ends:
                return
            self._resume(partition)
            self._read_until(lambda: bool(waiting) or partition not in self._pending_ends)

    def _next(self, partition: int) -> Message:
        message = self._waiting[partition].popleft()
        self._waiting_bytes[partition] -= _size(message)
        return message

    def _apply(self, message: Message) -> None:
        partition = message.partition() or 0
        self._waiting[partition].append(message)
        self._waiting_bytes[partition] += _size(message)
        if self._waiting_bytes[partition] > MOST_WAITING_BYTES and partition not in self._paused:
            self._consumer.pause([TopicPartition(self.topic, partition)])
            self._paused.add(partition)

    def _resume(self, partition: int) -> None:
        if partition in self._paused:
            self._consumer.resume([TopicPartition(self.topic, partition)])
            self._paused.remove(partition)

    def _starts(self, offsets: Mapping[int, tuple[int, int]]) -> list[TopicPartition]:
        # Of a partition that is added later, all records are new.
        start = Start(offset=0) if self._waiting else self._start
        self.offsets = self.offsets or dict(offsets)
        for partition in offsets:
            self._waiting[partition], self._waiting_bytes[partition] = deque(), 0
        return [TopicPartition(self.topic, partition, offset) for partition, offset in start.offsets(offsets, self._offsets_at).items()]

    def _first_and_end_offsets(self) -> dict[int, tuple[int, int]]:
        try:
            all_offsets = super()._first_and_end_offsets()
        except TopicMissing as error:
            raise self._with_names(error) from error
        if missing := self._only - all_offsets.keys():
            msg = f"topic {self.topic} has no partition {min(missing)}; there are {', '.join(map(str, all_offsets))}"
            raise StreamgaugeError(msg)
        return {partition: offsets for partition, offsets in all_offsets.items() if not self._only or partition in self._only}

    def _with_names(self, error: TopicMissing) -> TopicMissing:
        """The error, with similar topic names, or else the existing ones. Unchanged if Kafka has no topics."""
        topics = sorted(partitions_by_topic(self._kafka))
        if not topics:
            return error
        similar = ", ".join(get_close_matches(self.topic, topics))
        more = f" and {len(topics) - MOST_NAMES} more" if len(topics) > MOST_NAMES else ""
        but = f", but {similar}" if similar else f"; it has {', '.join(topics[:MOST_NAMES])}{more}"
        return TopicMissing(f"Kafka at {self._kafka} has no topic {self.topic}{but}")


def _time(message: Message) -> int:
    return message.timestamp()[1]


def _size(message: Message) -> int:
    return len(message.value() or b"") + _BYTES_OF_A_MESSAGE
