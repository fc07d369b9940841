"""Sends the records of dead letters to their topics again, each once.

A copy has the key, value, headers and timestamp of the record that its letter names, in the same partition, and a header that says of which
record it is the copy. So whether one was replayed before is known from the topic itself, also after a kill between two records. A topic
loses its oldest records first: as long as it has the record, it has the copy, too. A record that is gone is not replayed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import orjson
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, KafkaException, Message

from contract.topics import MAX_RECORD_BYTES, MAX_VALUE_BYTES
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster, close_producer
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.topic_ends import partitions_by_topic
from streamgauge.dead_letters.letters import Letter
from streamgauge.records.reader import TopicRecords
from streamgauge.records.start import Start

REPLAY_OF = "replay_of"
"""The header of a copy. The value is the place of the record, as in the key of its letter: {"offset","partition","topic"}."""
DELIVERY_SECONDS = 60
_SENDS_AT_ONCE = 1000
_BYTES_AT_ONCE = 64 * 1024 * 1024
"""The producer accepts at most a gigabyte of waiting records."""
NO_RECORD, GONE, BEFORE, SUPERSEDED = (
    "never a record of a topic",
    "no longer in the topic",
    "sent before",
    "of a key that has a newer record",
)
"""Why records are not sent."""

Partition = tuple[str, int]


@dataclass
class Plan:
    """The records to send, by partition and offset, each with the reason of its letter. skipped: how many are not sent, by reason."""

    records: dict[Partition, dict[int, str]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> Mapping[tuple[str, str], int]:
        """How many records are sent, by topic and reason of their letter; most first."""
        counts = Counter((topic, reason) for (topic, _), records in self.records.items() for reason in records.values())
        return dict(counts.most_common())

    @property
    def counts_by_topic(self) -> Mapping[str, int]:
        """How many records are sent to each topic."""
        counts: Counter[str] = Counter()
        for (topic, _), number in self.counts.items():
            counts[topic] += number
        return counts


@dataclass(frozen=True)
class _Wanted:
    """A record with a letter. digest: of its value. is_row: whether a copy would replace a newer record of its key, as in a table."""

    digest: bytes | None
    is_row: bool
    reason: str


def plan_of(kafka: KafkaCluster, letters: Iterable[Letter]) -> Plan:
    """Decides which records of the letters are sent. Reads their partitions, each from the first of these records on.

    Raises StreamgaugeError when Kafka does not answer.
    """
    plan, never, wanted = Plan(), set[bytes](), dict[Partition, dict[int, _Wanted]]()
    for letter in letters:
        if letter.offset is None:
            never.add(letter.key)
            continue
        records = wanted.setdefault((letter.topic, letter.partition), {})
        before = records.get(letter.offset)
        records[letter.offset] = _Wanted(_digest(letter.value), letter.is_of_row or (before is not None and before.is_row), letter.reason)
    plan.skipped.update({NO_RECORD: len(never)} if never else {})
    existing = partitions_by_topic(kafka)
    for partition, records in sorted(wanted.items()):
        topic, number = partition
        reasons = _reasons_not_to_send(kafka, partition, records) if number in existing.get(topic, ()) else dict.fromkeys(records, GONE)
        if records.keys() - reasons.keys():
            plan.records[partition] = {offset: record.reason for offset, record in records.items() if offset not in reasons}
        plan.skipped.update(reasons.values())
    return plan


def _reasons_not_to_send(kafka: KafkaCluster, partition: Partition, wanted: Mapping[int, _Wanted]) -> dict[int, str]:
    """The records of a partition that are not sent: why, by offset."""
    keys: dict[int, bytes | None] = {}
    newest: dict[bytes | None, int] = {}
    copied: set[bytes | None] = set()
    for message in _records(kafka, partition, min(wanted)):
        offset, key = message.offset() or 0, message.key()
        # Another record is there if the topic was created anew.
        if offset in wanted and wanted[offset].digest == _digest(message.value()):
            keys[offset] = key
            newest[key] = offset
        elif key in newest:
            newest[key] = offset
        copied |= {value for name, value in headers_of(message) if name == REPLAY_OF}

    def why(offset: int) -> str | None:
        if offset not in keys:
            return GONE
        if _place(partition, offset) in copied:
            return BEFORE
        return SUPERSEDED if wanted[offset].is_row and newest[keys[offset]] > offset else None

    return {offset: reason for offset in wanted if (reason := why(offset)) is not None}


def replay(kafka: KafkaCluster, plan: Plan) -> int:
    """Sends the records of the plan, and returns how many.

    Raises StreamgaugeError when Kafka does not answer, or does not accept them all; a retry sends the rest.
    """
    sending = _Sending(kafka)
    try:
        for partition, records in plan.records.items():
            for message in _records(kafka, partition, min(records), max(records)):
                if (message.offset() or 0) in records:
                    sending.send(partition, message)
        sending.wait()
    finally:
        sending.close()
    if refused := sending.refused:
        msg = f"Kafka at {kafka} did not accept {len(refused):,} of {sending.count:,} records ({refused[0]}), and the others are sent; replay again, which sends only the rest"
        raise StreamgaugeError(msg)
    return sending.count


class _Sending:
    """A producer that waits for its records. refused: why Kafka did not accept a record, for each."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self.count = self._waiting_bytes = 0
        self._kafka = kafka
        self.refused: list[str] = []
        self._producer = kafka.producer({"acks": "all", "enable.idempotence": True, "message.max.bytes": MAX_RECORD_BYTES})

    def send(self, partition: Partition, message: Message) -> None:
        """Sends a copy of the record to its partition."""
        topic, number = partition
        kind, timestamp_ms = message.timestamp()
        headers = [header for header in headers_of(message) if header[0] != REPLAY_OF]
        try:
            self._producer.produce(
                topic,
                message.value(),
                message.key(),
                partition=number,
                timestamp=timestamp_ms if kind == TIMESTAMP_CREATE_TIME else 0,
                headers=[*headers, (REPLAY_OF, _place(partition, message.offset() or 0))],
                on_delivery=self._note,
            )
        except KafkaException as error:
            self.refused.append(error.args[0].str())
        self.count += 1
        self._waiting_bytes += len(message.value() or b"") + len(message.key() or b"")
        if self.count % _SENDS_AT_ONCE == 0 or self._waiting_bytes > _BYTES_AT_ONCE:
            self.wait()

    def wait(self) -> None:
        """Waits until Kafka has accepted all records, or refused them. Raises StreamgaugeError if it does not answer."""
        if self._producer.flush(DELIVERY_SECONDS):
            msg = f"Kafka at {self._kafka} did not accept a record within {DELIVERY_SECONDS} s; replay again, which sends the rest"
            raise StreamgaugeError(msg)
        self._waiting_bytes = 0

    def close(self) -> None:
        close_producer(self._producer, 0)

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.refused.append(error.str())


def _records(kafka: KafkaCluster, partition: Partition, first: int, last: int | None = None) -> Iterator[Message]:
    """The records of a partition from an offset on, to its end now, or to the offset `last`."""
    topic, number = partition
    with TopicRecords(kafka, topic, Start(offset=first), [number]).opened() as reader:
        for message in reader.present():
            if last is not None and (message.offset() or 0) > last:
                return
            yield message


def _digest(value: bytes | None) -> bytes | None:
    """The digest of the part of a value that a letter keeps."""
    return None if value is None else sha256(value[:MAX_VALUE_BYTES]).digest()


def _place(partition: Partition, offset: int) -> bytes:
    return orjson.dumps({"offset": offset, "partition": partition[1], "topic": partition[0]})
