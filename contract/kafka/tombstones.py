"""Deletes rows of a compacted topic by writing tombstones. Readers drop the row at once; compaction removes it for good."""

from collections.abc import Collection

from confluent_kafka import KafkaError, Message

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster

DELIVERY_SECONDS = 60


def delete_rows(kafka: KafkaCluster, topic: str, keys: Collection[bytes]) -> int:
    """Writes a tombstone for each of `keys` and waits until Kafka acknowledges all. Returns the number of keys.

    Raises StreamgaugeError when Kafka does not accept them all. Some rows may be deleted then; a retry deletes the rest.
    """
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    # A tombstone deletes only in the row's own partition. This is the partitioner of Java clients, and so of Spark.
    config = {"acks": "all", "partitioner": "murmur2_random", "message.timeout.ms": DELIVERY_SECONDS * 1000}
    producer = kafka.producer(config | {"queue.buffering.max.messages": 0})
    for key in keys:
        producer.produce(topic, None, key, on_delivery=note)
    unsent = producer.flush(DELIVERY_SECONDS)
    if failures or unsent:
        reason = failures[0].str() if failures else f"no answer within {DELIVERY_SECONDS} s"
        msg = f"Kafka at {kafka} did not take {len(failures) + unsent} of {len(keys)} deletions for topic {topic} ({reason}); check that it is running, and try again"
        raise StreamgaugeError(msg)
    return len(keys)
