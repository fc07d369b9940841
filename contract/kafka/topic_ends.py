"""Where the source topics end by now, which Spark does not tell."""

import contextlib
from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from contract.kafka.cluster import KafkaCluster

ANSWER_SECONDS = 5


class TopicEnds:
    """The ends of partitions as Kafka last told them. It keeps what it knows while Kafka is away."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._admin = kafka.admin()
        self.ends: dict[str, int] = {}
        """Of each partition ("topic-0"), the offset that its next record will have. It is replaced as a whole, never changed."""

    def ask(self, partitions: Iterable[str]) -> None:
        """Asks for the ends of `partitions` ("topic-0"), waiting at most ANSWER_SECONDS."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(name.rpartition("-")[0], int(name.rpartition("-")[2])): latest for name in partitions}
        if not wanted:
            return
        with contextlib.suppress(KafkaException, TimeoutError):
            answers = self._admin.list_offsets(wanted, request_timeout=ANSWER_SECONDS)
            self.ends = self.ends | {f"{of.topic}-{of.partition}": end.result(ANSWER_SECONDS).offset for of, end in answers.items()}
