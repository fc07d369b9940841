"""Reads the newest records of a topic, by count, by age, or both. Older records are not read, however long the topic is.

`last_records` reads them once. `RecentReader` keeps reading.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from confluent_kafka import Message, TopicPartition

from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.result_table import TableReader, timestamp_ms_of
from infrastructure.rows import Decode

DecodeMessage = Callable[[Message], Any]
"""Decodes a record to a row. Raises an error with a reason when it cannot."""


def of_message(decode: Decode) -> DecodeMessage:
    """Decodes the value of a record, which may not be null."""
    return lambda message: decode(message.value() or b"")


class Recent(NamedTuple):
    """Which records to read: the newest `records` of each partition, not older than `within` by Kafka timestamp (None: any age)."""

    records: int
    within: timedelta | None = None


class RecentRows:
    """The rows of the newest records, oldest first. Has the interface of a ResultTable, without keys."""

    def __init__(self, recent: Recent, decode: DecodeMessage) -> None:
        self._recent, self._decode = recent, decode
        self._rows: dict[int, deque[tuple[int, Any]]] = defaultdict(lambda: deque(maxlen=recent.records))
        self._unreadable: deque[tuple[bytes, str]] = deque(maxlen=recent.records)
        self._newest_timestamp_ms: int | None = None

    def apply(self, message: Message) -> None:
        """Adds a record, and drops rows over the count or age limit."""
        timestamp_ms = timestamp_ms_of(message) or 0
        self._newest_timestamp_ms = max(timestamp_ms, self._newest_timestamp_ms or 0)
        try:
            self._rows[message.partition() or 0].append((timestamp_ms, self._decode(message)))
        except Exception as error:  # decoders raise any error; keep the reason and read on
            self._unreadable.append((f"offset {message.offset()}".encode(), f"{type(error).__name__}: {error}"))
        if self._recent.within is not None:
            oldest_ms = self._newest_timestamp_ms - self._recent.within.total_seconds() * 1000
            for rows in self._rows.values():
                while rows and rows[0][0] < oldest_ms:
                    rows.popleft()

    def rows(self) -> list[Any]:
        """The rows, oldest first."""
        return [row for _, row in sorted(chain.from_iterable(self._rows.values()), key=itemgetter(0))]

    @property
    def unreadable(self) -> Mapping[bytes | None, str]:
        """The records that could not be decoded: offset to reason."""
        return dict(self._unreadable)

    @property
    def newest_record_at(self) -> datetime | None:
        """The newest Kafka timestamp, UTC. None before the first record."""
        return None if self._newest_timestamp_ms is None else datetime.fromtimestamp(self._newest_timestamp_ms / 1000, UTC)


class RecentReader(TableReader):
    """Reads the newest records of a topic into `table`, then follows the topic."""

    table: RecentRows  # type: ignore[assignment]

    def __init__(self, kafka: KafkaCluster, topic: str, recent: Recent, decode: DecodeMessage) -> None:
        super().__init__(kafka, topic)
        self.table = RecentRows(recent, decode)
        self._recent = recent

    def _apply(self, message: Message) -> None:
        self.table.apply(message)

    def _starts(self, offsets: Mapping[int, tuple[int, int]]) -> list[TopicPartition]:
        within = self._recent.within
        by_time = {} if within is None else self._offsets_at(round((time.time() - within.total_seconds()) * 1000), offsets)
        return [
            TopicPartition(self.topic, partition, max(first, end - self._recent.records, by_time.get(partition, first)))
            for partition, (first, end) in offsets.items()
        ]


def last_records(kafka: KafkaCluster, topic: str, count: int, keep: DecodeMessage = lambda message: message) -> list[Any]:
    """The last `count` records of each partition, each as `keep` returns it, oldest first. Raises StreamgaugeError as `RecentReader` does."""
    with RecentReader(kafka, topic, Recent(count), keep).opened() as reader:
        reader.read_to_end()
        return reader.table.rows()
