"""Reads records of a topic in bulk, as Arrow tables."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from audit.reading.files import SourceFile, lines_of
from contract.checkpoints.contents import Offsets
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.client_options import client_options
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.errors import no_answer
from infrastructure.kafka.record_clock import LAST_CLOCK_MS, NO_TIMESTAMP_MS, clock_ms_of
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.topic_ends import METADATA_SECONDS
from infrastructure.settings import Settings

Origin = tuple[str, int, int]
"""Topic, partition and offset of a record."""
AT_ONCE = 5_000
_CONSUMED_AT_ONCE = 1_000  # of more, Python's garbage collector visits all again and again
SILENCE_SECONDS = 30
SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms"),
        "clock": pa.timestamp("ms"),
        "value": pa.binary(),
        "problem": pa.string(),
        "key": pa.binary(),
        "headers": pa.list_(pa.struct({"name": pa.string(), "value": pa.binary()})),
    }
)
"""clock: the time against which events count as being in the future; null, as timestamp, if Kafka's timestamp is not of the years 1970 to 2999.
problem: why a line of a file is no document."""
_OPTIONS = {
    "enable.partition.eof": True,
    "auto.offset.reset": "error",  # a record that is gone must not go unnoticed
    "fetch.wait.max.ms": 50,
    "queued.max.messages.kbytes": 8_192,  # of each partition
    "fetch.message.max.bytes": 16 * 1024 * 1024,
}


class RecordReader:
    """Reads records with one consumer, which is opened when it is needed, and kept. Use it from one thread at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._kafka = settings, settings.kafka
        self._consumer: Consumer | None = None

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def between(self, starts: Offsets, ends: Offsets, files: Mapping[str, SourceFile] = MappingProxyType({})) -> Iterator[pa.Table]:
        """See `records_between`."""
        unread = {partition: end for partition, end in ends.items() if starts[partition] < end}
        if not unread:
            yield SCHEMA.empty_table()
        if of_files := [partition for partition in unread if partition[0] in files]:
            yield from _lines(files[topic] for topic, _ in of_files)
            unread = {partition: end for partition, end in unread.items() if partition not in of_files}
        if not unread:
            return
        if self._consumer is None:
            # The query may have counted what was aborted.
            isolation = {name: value for name, value in client_options(self._settings.kafka_options).items() if name == "isolation.level"}
            self._consumer = self._kafka.consumer({**_OPTIONS, **isolation})
        try:
            _find_leaders(self._consumer, {topic for topic, _ in unread}, self._kafka)
            self._consumer.assign([TopicPartition(topic, number, starts[topic, number]) for topic, number in unread])
            yield from self._assigned(self._consumer, unread, ends)
            self._consumer.unassign()
        except BaseException:  # also if no more are wanted: it would read on
            self.close()
            raise

    def _assigned(self, consumer: Consumer, unread: dict[tuple[str, int], int], ends: Offsets) -> Iterator[pa.Table]:
        heard_at, rows = time.monotonic(), list[tuple[Any, ...]]()
        while unread:
            # What is there, or else the next one: `consume` waits for as many as it is asked for.
            messages = consumer.consume(_CONSUMED_AT_ONCE, timeout=0) or consumer.consume(1, timeout=0.1)
            if messages:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > SILENCE_SECONDS:
                msg = (
                    f"Kafka at {self._kafka} sent nothing for {SILENCE_SECONDS} s before the end of {sorted(unread)}; see the broker's log"
                )
                raise StreamgaugeError(msg)
            before = set(unread)
            wanted = [message for message in messages if _is_wanted(message, unread, ends, self._kafka)]
            if done := before - unread.keys():  # else their later records would be read, too
                consumer.incremental_unassign([TopicPartition(*partition) for partition in done])
            rows += map(_row, wanted)
            if len(rows) >= AT_ONCE or not unread:
                yield _of_rows(rows)
                rows = []


def records_between(
    settings: Settings,
    starts: Offsets,
    ends: Offsets,
    files: Mapping[str, SourceFile] = MappingProxyType({}),
) -> Iterator[pa.Table]:
    """The records of each partition from its offset in `starts` up to, not including, its offset in `ends`: tables with the columns of SCHEMA.

    There is always one table, which may be empty. files: by the topic of their records.

    Raises StreamgaugeError when Kafka does not answer, or no longer has one of the records.
    """
    with closing(RecordReader(settings)) as reader:
        yield from reader.between(starts, ends, files)


def _find_leaders(consumer: Consumer, topics: Iterable[str], kafka: KafkaCluster) -> None:
    """Asks for the leaders of partitions: for those of a topic that is new to it, the consumer would look once a second only."""
    try:
        for topic in topics:
            consumer.list_topics(topic, timeout=METADATA_SECONDS)
    except KafkaException as error:
        raise no_answer(kafka, error) from error


def _is_wanted(message: Message, unread: dict[tuple[str, int], int], ends: Offsets, kafka: KafkaCluster) -> bool:
    """Whether the message is a record before the end. Removes its partition from `unread` when it has been read."""
    error, partition = message.error(), (message.topic() or "", message.partition() or 0)
    if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
        msg = f"Kafka has deleted records of {partition[0]}-{partition[1]} while they were read; verify again"
        raise StreamgaugeError(msg)
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise no_answer(kafka, KafkaException(error))
    # At its end, a partition may have offsets without records: those of transactions.
    if error is not None or (message.offset() or 0) + 1 >= unread.get(partition, 0):
        unread.pop(partition, None)
    return error is None and (message.offset() or 0) < ends[partition]


def _row(message: Message) -> tuple[Any, ...]:
    return (
        message.topic(),
        message.partition(),
        message.offset(),
        *_times(message),
        message.value(),
        None,
        message.key(),
        headers_of(message),
    )


def _of_rows(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    columns: Any = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def _lines(files: Iterable[SourceFile]) -> Iterator[pa.Table]:
    rows: list[tuple[Any, ...]] = []
    for file in files:
        for line in lines_of(file.path):
            rows.append((file.topic, 0, line.number, file.modified_ms, file.modified_ms, line.value, line.problem, None, None))
            if len(rows) == AT_ONCE:
                yield _of_rows(rows)
                rows = []
    yield _of_rows(rows)


def _times(message: Message) -> tuple[int | None, int | None]:
    """The columns timestamp and clock."""
    timestamp_ms = message.timestamp()[1]
    return (timestamp_ms, clock_ms_of(message)) if NO_TIMESTAMP_MS <= timestamp_ms <= LAST_CLOCK_MS else (None, None)
