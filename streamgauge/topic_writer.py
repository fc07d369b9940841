"""Writes a bounded number of records to a topic, and waits until Kafka has them all."""

from typing import Any

from confluent_kafka import KafkaError, Message

from streamgauge.kafka_cluster import KafkaCluster
from streamgauge.topics import LARGEST_RECORD_BYTES

DELIVERY_SECONDS = 60


class TopicWriter:
    """Writes to `topic`; a record goes to the partition that Java's clients, and so Spark, choose for its key."""

    def __init__(self, kafka: KafkaCluster, topic: str) -> None:
        self.topic, self.written = topic, 0
        self._failures: list[KafkaError] = []
        self._producer = kafka.producer(
            {
                "acks": "all",
                "linger.ms": 20,
                "compression.type": "lz4",
                "partitioner": "murmur2_random",
                "message.max.bytes": LARGEST_RECORD_BYTES,
                "queue.buffering.max.kbytes": 65_536,
                "message.timeout.ms": DELIVERY_SECONDS * 1000,
            }
        )

    def write(self, key: bytes | None, value: bytes | None, **rest: Any) -> None:  # noqa: ANN401 - as Producer.produce takes them
        """Hands over a record; waits while too many are under way. rest: headers, timestamp."""
        while True:
            try:
                self._producer.produce(self.topic, value, key, on_delivery=self._note, **rest)
            except BufferError:
                self._producer.poll(0.1)
            else:
                self.written += 1
                self._producer.poll(0)
                return

    def undelivered(self) -> tuple[int, str]:
        """Waits for Kafka to have all that was written. How many records it has not, and why."""
        unsent = self._producer.flush(DELIVERY_SECONDS)
        reason = self._failures[0].str() if self._failures else f"no answer within {DELIVERY_SECONDS} s"
        return len(self._failures) + unsent, reason

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(error)
