"""Reads a compacted topic as a table: the last value of each key, where a tombstone deletes the row.

`ResultTable` applies records, `TableReader` feeds it from Kafka, `read_to_end` does both once.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, Message, TopicCollection, TopicPartition

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster, shared_admin
from infrastructure.kafka.errors import forbidden, is_forbidden, no_answer, no_topic, raise_if_access_denied
from infrastructure.kafka.record_clock import LAST_CLOCK_MS
from infrastructure.rows import Decode, Row, check_key, decode_json
from infrastructure.text import printable

ANSWER_SECONDS = 5
"""Timeout for requests about a topic."""
CHECK_SECONDS = 5
"""How often a reader that follows its topic checks it."""
SILENCE_SECONDS = 30
"""How long `read_to_end` waits for the next record before it fails."""
_RECORDS_PER_POLL = 1000


def timestamp_ms_of(message: Message) -> int | None:
    """Kafka's timestamp of a record, ms since 1970. None if it has none, or one in another unit: micro- and nanoseconds are beyond the year 2999."""
    kind, timestamp_ms = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE or not 0 <= timestamp_ms <= LAST_CLOCK_MS else timestamp_ms


class ResultTable:
    """The last value of each key.

    The result is the same before and after compaction. For that reason a value that cannot be decoded, or contradicts its key, removes its
    key's row instead of leaving an older one. The key stays in `unreadable` until a readable value or a tombstone follows.
    """

    def __init__(self, decode: Decode = decode_json) -> None:
        self._decode = decode
        self._rows: dict[bytes, Row] = {}
        self._unreadable: dict[bytes | None, str] = {}
        self._newest_timestamp_ms: int | None = None

    def apply(self, key: bytes | None, value: bytes | None, timestamp_ms: int | None = None) -> None:
        """Applies one record. timestamp_ms: Kafka's, since 1970. A record without a key counts as unreadable.

        Raises StreamgaugeError when `decode` cannot decode any value at present. The table must then be read again.
        """
        if timestamp_ms is not None:
            self._newest_timestamp_ms = max(timestamp_ms, self._newest_timestamp_ms or 0)
        if key is None:
            self._unreadable[None] = "a record without a key"
            return
        self._rows.pop(key, None)
        self._unreadable.pop(key, None)
        if value is None:
            return
        try:
            row = self._decode(value)
            check_key(key, row)
        except StreamgaugeError:
            raise
        except Exception as error:  # Avro decoders raise many types; keep the reason for display
            self._unreadable[key] = f"{type(error).__name__}: {error}"
        else:
            self._rows[key] = row

    def rows(self) -> list[Row]:
        """The decoded rows, in order of their last change."""
        return list(self._rows.values())

    def keys(self) -> list[bytes]:
        """The keys of the rows, in the same order as `rows`."""
        return list(self._rows)

    @property
    def unreadable(self) -> Mapping[bytes | None, str]:
        """The keys whose last value could not be decoded, with the reason. Key None stands for records without a key."""
        return dict(self._unreadable)

    @property
    def newest_record_at(self) -> datetime | None:
        """The newest Kafka timestamp of all records including tombstones, UTC. None before the first."""
        return None if self._newest_timestamp_ms is None else datetime.fromtimestamp(self._newest_timestamp_ms / 1000, UTC)


class TableReader:
    """Reads a topic from its beginning into `table`, then follows it. Joins no consumer group and commits nothing."""

    _client_options: ClassVar[Mapping[str, Any]] = {}
    """More of librdkafka's options."""

    def __init__(self, kafka: KafkaCluster, topic: str, decode: Decode = decode_json) -> None:
        self.table = ResultTable(decode)
        self.topic, self._kafka = topic, kafka
        self._pending_ends: dict[int, int] = {}
        self._next_offsets: dict[int, int] = {}
        self._assigned: set[int] = set()
        self._topic_id: str | None = None
        self._lost: KafkaError | None = None
        self._checked_at = time.monotonic()
        self._consumer = kafka.consumer(
            {
                "enable.partition.eof": True,
                # Fail if the topic was truncated, instead of reading it again on top of the old rows.
                "auto.offset.reset": "error",
                "socket.timeout.ms": 10_000,
                # By default, a consumer reads 64 MB ahead, more than the memory that a small container has left.
                "queued.max.messages.kbytes": 8192,
                "error_cb": self._note,
                **self._client_options,
            }
        )

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Positions the reader, and closes it at the end.

        Raises StreamgaugeError when Kafka does not answer, rejects this client, or does not have the topic.
        """
        try:
            raise_if_access_denied(self._kafka)
            self._assign(self._first_and_end_offsets())
            yield self
        finally:
            self._consumer.close()

    @property
    def is_caught_up(self) -> bool:
        """Whether the reader has reached the end offsets from when it was opened."""
        return not self._pending_ends

    def poll(self, timeout_seconds: float) -> bool:
        """Applies the records that have arrived, waiting at most `timeout_seconds`. Returns whether any record was applied.

        Raises StreamgaugeError when Kafka is gone, the topic can no longer be read, or `decode` cannot decode any value. The table must
        then be read again.
        """
        applied, taken = False, 0
        message = self._consumer.poll(timeout_seconds)
        while message is not None:
            applied, taken = self._take(message) or applied, taken + 1
            message = self._consumer.poll(0) if taken < _RECORDS_PER_POLL else None
        if self._lost is not None:
            raise self._unreachable(self._lost)
        return applied

    def read_to_end(self) -> None:
        """Reads up to the end offsets from when the reader was opened.

        Raises StreamgaugeError as `poll`, and when no record arrives within SILENCE_SECONDS.
        """
        self._read_until(lambda: self.is_caught_up)

    def _read_until(self, is_enough: Callable[[], bool]) -> None:
        heard_at = time.monotonic()
        while not is_enough():
            if self.poll(timeout_seconds=0.5):
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > SILENCE_SECONDS:
                msg = f"Kafka at {self._kafka} sent nothing for {SILENCE_SECONDS} s before the end of topic {self.topic}; see the broker's log"
                raise StreamgaugeError(msg)

    def check_when_due(self) -> None:
        """Calls `check` every CHECK_SECONDS."""
        if time.monotonic() - self._checked_at > CHECK_SECONDS:
            self.check()
            self._checked_at = time.monotonic()

    def check(self) -> None:
        """Checks that the topic is still the same, and adds partitions that are new. A consumer alone notices neither, and a hanging broker late.

        Raises StreamgaugeError when Kafka does not answer, or the topic was deleted or recreated.
        """
        offsets = self._first_and_end_offsets()
        if any(offsets.get(partition, (0, 0))[1] < offset for partition, offset in self._next_offsets.items()) or not self._is_same_topic():
            msg = f"topic {self.topic} at {self._kafka} was recreated; read it again from the start"
            raise StreamgaugeError(msg)
        if added := {partition: ends for partition, ends in offsets.items() if partition not in self._assigned}:
            self._assign(added)

    def _is_same_topic(self) -> bool:
        """Whether the topic has the id that it had at the first call."""
        try:
            admin = shared_admin(self._kafka)  # keeps the client: one without a reference is closed, and loses its answers
            described = admin.describe_topics(TopicCollection([self.topic]), request_timeout=ANSWER_SECONDS)
            topic_id = str(described[self.topic].result().topic_id)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from error
        self._topic_id = self._topic_id or topic_id
        return topic_id == self._topic_id

    def _assign(self, offsets: Mapping[int, tuple[int, int]]) -> None:
        """Begins to read partitions. offsets: the first and end offset by partition."""
        starts = self._starts(offsets)
        self._pending_ends |= {
            start.partition: end for start in starts for first, end in [offsets[start.partition]] if max(first, start.offset) < end
        }
        self._assigned |= offsets.keys()
        self._consumer.incremental_assign(starts)

    def _starts(self, offsets: Mapping[int, tuple[int, int]]) -> list[TopicPartition]:
        """The starting offset by partition. offsets: the first and end offset by partition."""
        return [TopicPartition(self.topic, partition, OFFSET_BEGINNING) for partition in offsets]

    def _first_and_end_offsets(self) -> dict[int, tuple[int, int]]:
        try:
            metadata = self._consumer.list_topics(self.topic, ANSWER_SECONDS).topics[self.topic]
            if is_forbidden(metadata.error) or (metadata.error and metadata.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
                raise no_topic(self._kafka, self.topic, ANSWER_SECONDS)
            if metadata.error or not metadata.partitions:
                reason = metadata.error.str() if metadata.error else "it has no partitions"
                msg = f"topic {self.topic} at {self._kafka} cannot be read at present: {reason}; try again, and see the broker's log"
                raise StreamgaugeError(msg)
            partitions = [TopicPartition(self.topic, partition) for partition in metadata.partitions]
            return {partition.partition: self._consumer.get_watermark_offsets(partition, ANSWER_SECONDS) for partition in partitions}
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from error

    def _offsets_at(self, time_ms: int, offsets: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """The offset of the first record from `time_ms` on (since 1970), by partition; its end offset if there is none."""
        try:
            answers = self._consumer.offsets_for_times([TopicPartition(self.topic, number, time_ms) for number in offsets], ANSWER_SECONDS)
        except KafkaException as error:
            raise self._unreachable(error.args[0]) from error
        return {answer.partition: answer.offset if answer.offset >= 0 else offsets[answer.partition][1] for answer in answers}

    def _take(self, message: Message) -> bool:
        error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
        if error is None:
            self._apply(message)
            self._next_offsets[partition] = offset + 1
            is_at_end = offset + 1 >= self._pending_ends.get(partition, 0)
        elif error.code() == KafkaError._PARTITION_EOF:
            # The last offsets may hold no record: transaction markers, or records removed by compaction.
            is_at_end = True
        elif is_forbidden(error):
            raise forbidden(self._kafka, f"read topic {self.topic}")
        else:
            msg = f"topic {self.topic} at {self._kafka} can no longer be read: {error.str()}; read it again from the start"
            raise StreamgaugeError(msg)
        if is_at_end:
            self._pending_ends.pop(partition, None)
        return error is None

    def _apply(self, message: Message) -> None:
        self.table.apply(message.key(), message.value(), timestamp_ms_of(message))

    def _note(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._lost = error

    def _unreachable(self, error: KafkaError) -> StreamgaugeError:
        return no_answer(self._kafka, KafkaException(error))


def read_keys(kafka: KafkaCluster, topic: str) -> list[bytes]:
    """The keys of the current rows of `topic`, without decoding the values. Raises StreamgaugeError as `read_to_end`."""
    return read_to_end(kafka, topic, lambda _: {}).keys()


def read_to_end(kafka: KafkaCluster, topic: str, decode: Decode = decode_json, warn: Callable[[str], None] = lambda _: None) -> ResultTable:
    """The current table of `topic`: all records present at the call, and possibly newer ones.

    warn: gets one line if there are rows that cannot be read. Raises StreamgaugeError when Kafka does not answer, stops sending before the end, or does not have the topic.
    """
    with TableReader(kafka, topic, decode).opened() as reader:
        reader.read_to_end()
        if line := left_out(topic, reader.table.unreadable):
            warn(line)
        return reader.table


def left_out(topic: str, unreadable: Mapping[bytes | None, str]) -> str | None:
    """One line about the rows of `topic` that cannot be read, and so are missing from what is shown. None if there are none."""
    if not unreadable:
        return None
    key, reason = next(iter(unreadable.items()))
    several = "1 row" if len(unreadable) == 1 else f"{len(unreadable):,} rows"
    return printable(
        f"{several} of topic {topic} cannot be read and left out, the first with key {key!r:.200}: {reason}; find out what wrote them, such as a pipeline of another version, stop it, and delete them with null values"
    )
