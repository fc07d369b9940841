"""The topics of a Kafka cluster, and the offsets of their partitions."""

import contextlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from infrastructure.kafka.cluster import KafkaCluster, shared_admin
from infrastructure.kafka.errors import KafkaUnavailable, forbidden, is_forbidden, no_answer, raise_if_access_denied, reason

ANSWER_SECONDS = 5
METADATA_SECONDS = 10
EARLIEST, LATEST, NEWEST = OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
"""The first offset, the offset of the next record, and the record with the newest timestamp. Records of open transactions do not count yet."""


def partitions_by_topic(kafka: KafkaCluster) -> dict[str, list[int]]:
    """The partitions of each topic. Raises KafkaUnavailable when it cannot reach Kafka, KafkaRefuses when Kafka denies access."""
    raise_if_access_denied(kafka)
    try:
        topics = shared_admin(kafka).list_topics(timeout=METADATA_SECONDS).topics
    except KafkaException as error:
        raise no_answer(kafka, error) from error
    return {name: sorted(topic.partitions) for name, topic in topics.items()}


def first_and_end_offsets(kafka: KafkaCluster, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    """The first available offset and the end offset (of the next record) of each partition.

    Raises KafkaUnavailable when it cannot reach Kafka or a partition does not exist (a new topic has no leader for a moment), KafkaRefuses when
    Kafka denies access.
    """
    admin, wanted = shared_admin(kafka), list(partitions)
    try:
        admin.list_topics(timeout=METADATA_SECONDS)  # connects: otherwise the first request may wait for a second; and finds new leaders
        first, end = (list_offsets(admin, wanted, spec, METADATA_SECONDS) for spec in (EARLIEST, LATEST))
    except (KafkaException, TimeoutError) as error:
        names = ", ".join(sorted({topic for topic, _ in wanted}))
        if isinstance(error, KafkaException) and is_forbidden(error.args[0]):
            raise forbidden(kafka, f"ask for the offsets of topic {names}") from error
        msg = f"Kafka at {kafka} did not return the offsets of topic {names}: {reason(error, METADATA_SECONDS)}; check that it is running, and create its topics with `streamgauge up`"
        raise KafkaUnavailable(msg) from error
    return {partition: (first[partition].offset, end[partition].offset) for partition in first}


def offsets_at(kafka: KafkaCluster, partitions: Iterable[tuple[str, int]], time_ms: int) -> dict[tuple[str, int], int | None]:
    """The offset of the first record of each partition whose timestamp is `time_ms` or later; None if there is none.

    Raises KafkaUnavailable when Kafka does not answer.
    """
    at = OffsetSpec.for_timestamp(time_ms)
    try:
        answers = list_offsets(shared_admin(kafka), partitions, at, METADATA_SECONDS)
    except (KafkaException, TimeoutError) as error:
        msg = f"Kafka at {kafka} did not return the offsets of a time: {reason(error, METADATA_SECONDS)}"
        raise KafkaUnavailable(msg) from error
    return {partition: answer.offset if answer.offset >= 0 else None for partition, answer in answers.items()}


def list_offsets(
    admin: AdminClient, partitions: Iterable[tuple[str, int]], spec: OffsetSpec, seconds: float
) -> Mapping[tuple[str, int], ListOffsetsResultInfo]:
    """An offset of each partition, by topic and number. Raises KafkaException or TimeoutError after `seconds` without an answer."""
    return {partition: answer.result(seconds) for partition, answer in _ask_for_offsets(admin, partitions, spec, seconds).items()}


def _ask_for_offsets(
    admin: AdminClient, partitions: Iterable[tuple[str, int]], spec: OffsetSpec, seconds: float
) -> Mapping[tuple[str, int], Future[ListOffsetsResultInfo]]:
    wanted = {TopicPartition(topic, number): spec for topic, number in partitions}
    committed = IsolationLevel.READ_COMMITTED  # as Spark's sources read
    answers = admin.list_offsets(wanted, isolation_level=committed, request_timeout=seconds) if wanted else {}
    return {(partition.topic, partition.partition): answer for partition, answer in answers.items()}


class TopicEnds:
    """The last known end offsets of partitions. Keeps them while Kafka is unavailable."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._admin = kafka.admin()
        self.ends: dict[str, int] = {}
        """The offset of the next record, by partition ("topic-0"). Replaced as a whole, never mutated."""

    def close(self) -> None:
        """Ends the threads of the client. See `close_producer`."""
        with self._admin:
            pass

    def ask(self, partitions: Iterable[str]) -> bool:
        """Requests the end offsets of `partitions` ("topic-0"). Waits at most ANSWER_SECONDS. Returns whether Kafka gave any.

        It gives none for a topic that was deleted, or that this client may not read.
        """
        wanted = [(topic, int(number)) for topic, _, number in (name.rpartition("-") for name in partitions)]
        ends: dict[str, int] = {}
        for (topic, number), answer in _ask_for_offsets(self._admin, wanted, LATEST, ANSWER_SECONDS).items():
            with contextlib.suppress(KafkaException, TimeoutError):
                ends[f"{topic}-{number}"] = answer.result(ANSWER_SECONDS).offset
        self.ends = self.ends | ends
        return bool(ends)
