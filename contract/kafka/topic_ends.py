"""The topics of a Kafka cluster, and the end offsets of their partitions, which Spark does not report."""

import contextlib
from collections.abc import Iterable

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from contract.kafka.cluster import KafkaCluster
from contract.kafka.errors import no_answer, raise_if_kept_out

ANSWER_SECONDS = 5
METADATA_SECONDS = 10


def partitions_by_topic(kafka: KafkaCluster) -> dict[str, list[int]]:
    """The partitions of each topic. Raises KafkaAway when it cannot reach Kafka, KafkaRefuses when Kafka denies access."""
    raise_if_kept_out(kafka)
    admin = kafka.admin()
    try:
        topics = admin.list_topics(timeout=METADATA_SECONDS).topics
    except KafkaException as error:
        raise no_answer(kafka, error) from error
    return {name: sorted(topic.partitions) for name, topic in topics.items()}


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
