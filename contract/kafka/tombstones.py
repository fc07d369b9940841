"""Deletes rows of a compacted topic: a null value for each key, which readers obey at once and compaction makes final."""

from collections.abc import Collection

from confluent_kafka import KafkaError, Message

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster

DELIVERY_SECONDS = 60


def delete_rows(kafka: KafkaCluster, topic: str, keys: Collection[bytes]) -> int:
    """Writes a null value for each of `keys`, and waits until Kafka has them all; returns how many.

    Raises StreamgaugeError when Kafka does not take them; some rows may be deleted then, and doing it again deletes the rest.
    """
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    # A null in any other partition than the row's would delete nothing: this is how Java's clients, and so Spark, choose it.
    config = {"acks": "all", "partitioner": "murmur2_random", "message.timeout.ms": DELIVERY_SECONDS * 1000}
    producer = kafka.producer(config | {"queue.buffering.max.messages": 0})
    for key in keys:
        producer.produce(topic, None, key, on_delivery=note)
    unsent = producer.flush(DELIVERY_SECONDS)
    if failures or unsent:
        reason = failures[0].str() if failures else f"no answer within {DELIVERY_SECONDS} s"
        msg = f"Kafka at {kafka} did not take {len(failures) + unsent} of {len(keys)} deletions for topic {topic} ({reason}); see that it runs, and try again"
        raise StreamgaugeError(msg)
    return len(keys)
