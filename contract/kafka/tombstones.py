"""Writes rows of a compacted topic, and deletes them by tombstones: readers drop the row at once, compaction removes it for good."""

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Message

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster

DELIVERY_SECONDS = 60
ROWS_AT_ONCE = 10_000
"""So many rows wait for their delivery at most: more would take too much memory, and the last ones too long."""


def write_rows(kafka: KafkaCluster, topic: str, values: Mapping[bytes, bytes | None]) -> None:
    """Writes a value by key, None as a tombstone, and waits until Kafka acknowledges all.

    Raises StreamgaugeError when Kafka does not accept them all. Some may be written then; a retry writes the rest.
    """
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    # A row's records are all in one partition. This is the partitioner of Java clients, and so of Spark.
    config = {"acks": "all", "partitioner": "murmur2_random", "message.timeout.ms": DELIVERY_SECONDS * 1000}
    producer = kafka.producer(config | {"queue.buffering.max.messages": 0})
    rows = list(values.items())
    for first in range(0, len(rows), ROWS_AT_ONCE):
        for key, value in rows[first : first + ROWS_AT_ONCE]:
            try:
                producer.produce(topic, value, key, on_delivery=note)
            except KafkaException as error:  # it is too large
                failures.append(error.args[0])
        unsent = producer.flush(DELIVERY_SECONDS)
        if failures or unsent:
            reason = failures[0].str() if failures else f"no answer within {DELIVERY_SECONDS} s"
            msg = f"Kafka at {kafka} did not accept {len(failures) + unsent} of {len(values)} rows for topic {topic} ({reason}); check that it is running, and try again"
            raise StreamgaugeError(msg)
