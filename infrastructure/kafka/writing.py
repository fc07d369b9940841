"""Writes records to a topic, and waits until Kafka has them all. A tombstone deletes a row: readers drop it at once, compaction for good."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster, close_producer

DELIVERY_SECONDS = 60
RECORDS_AT_ONCE = 10_000
"""So many records wait for their delivery at most: more would take too much memory, and the last ones too long."""


class Sent(NamedTuple):
    """A record to be sent."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


def write_rows(kafka: KafkaCluster, topic: str, values: Mapping[bytes, bytes | None]) -> None:
    """Writes the rows of a compacted topic: a value by key, None as a tombstone. As `write_records`."""
    write_records(kafka, topic, (Sent(key, value) for key, value in values.items()))


def write_records(kafka: KafkaCluster, topic: str, records: Iterable[Sent]) -> None:
    """Writes records, and waits until Kafka acknowledges all.

    Raises StreamgaugeError when Kafka does not accept them all. Some may be written then; a retry writes the rest.
    """
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    # All records of a key are in one partition. This is the partitioner of Java clients, and so of Spark.
    config = {"acks": "all", "partitioner": "murmur2_random", "message.timeout.ms": DELIVERY_SECONDS * 1000}
    producer, waiting = kafka.producer(config | {"queue.buffering.max.messages": 0}), list(records)
    try:
        for first in range(0, len(waiting), RECORDS_AT_ONCE):
            for record in waiting[first : first + RECORDS_AT_ONCE]:
                try:
                    producer.produce(topic, record.value, record.key, headers=list(record.headers), on_delivery=note)
                except KafkaException as error:  # it is too large
                    failures.append(error.args[0])
            unsent = producer.flush(DELIVERY_SECONDS)
            if failures or unsent:
                reason = failures[0].str() if failures else f"no answer within {DELIVERY_SECONDS} s"
                msg = f"Kafka at {kafka} did not accept {len(failures) + unsent} of {len(waiting)} records for topic {topic} ({reason}); check that it is running, and try again"
                raise StreamgaugeError(msg)
    finally:
        close_producer(producer, 0)
