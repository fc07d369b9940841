"""The end offsets of source topics, which Spark does not report."""

import contextlib
from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from contract.kafka.cluster import KafkaCluster

ANSWER_SECONDS = 5


class TopicEnds:
    """The last known end offsets of partitions. Keeps them while Kafka is unavailable."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._admin = kafka.admin()
        self.ends: dict[str, int] = {}
        """By partition ("topic-0"), the offset of the next record. Replaced as a whole, never mutated."""

    def close(self) -> None:
        """Ends the threads of the client. See `close_producer`."""
        with self._admin:
            pass

    def ask(self, partitions: Iterable[str]) -> None:
        """Requests the end offsets of `partitions` ("topic-0"). Waits at most ANSWER_SECONDS."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(name.rpartition("-")[0], int(name.rpartition("-")[2])): latest for name in partitions}
        if not wanted:
            return
        with contextlib.suppress(KafkaException, TimeoutError):
            answers = self._admin.list_offsets(wanted, request_timeout=ANSWER_SECONDS)
            self.ends = self.ends | {f"{of.topic}-{of.partition}": end.result(ANSWER_SECONDS).offset for of, end in answers.items()}
