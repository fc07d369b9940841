"""Creates the topics of topics.py in Kafka, and compares existing topics with their definitions."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from contract.domains import TOPICS
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.errors import KafkaUnavailable, is_forbidden, reason
from infrastructure.kafka.topic_ends import LATEST, partitions_by_topic
from infrastructure.process.waiting import Say, waiting
from infrastructure.settings import Settings

TIMEOUT_SECONDS = 30
LEADER_SECONDS = 300
"""How long a partition may have no leader."""


def create_topics(
    kafka: KafkaCluster,
    topics: Sequence[Topic] = TOPICS,
    say: Say = lambda _: None,
    *,
    replication_factor: int | None = None,
    min_insync_replicas: int | None = None,
) -> list[str]:
    """Creates missing topics. Returns one warning per differing setting of an existing topic; existing topics are not changed.

    replication_factor, min_insync_replicas: of the topics that are created; None for the broker's defaults.
    On return, every partition has a leader and can be read and written. `say` gets a message when that takes long.
    Raises KafkaUnavailable when the broker does not answer, StreamgaugeError when it refuses.
    """
    existing = {name: len(numbers) for name, numbers in partitions_by_topic(kafka).items()}
    admin = kafka.admin()
    missing = [topic for topic in topics if topic.name not in existing]
    insync = {} if min_insync_replicas is None else {"min.insync.replicas": str(min_insync_replicas)}
    replicas = -1 if replication_factor is None else replication_factor
    requests = [
        NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=replicas, config={**topic.config, **insync})
        for topic in missing
    ]
    for name, created in (admin.create_topics(requests) if requests else {}).items():
        _wait_for_creation(name, created)
    _wait_for_leaders(kafka, {topic.name: existing.get(topic.name, topic.partitions) for topic in topics}, say)
    try:
        differing = deviations(admin, [topic for topic in topics if topic.name in existing], existing)
    except (KafkaException, TimeoutError) as error:
        return [f"the settings of the existing topics could not be read ({reason(error, TIMEOUT_SECONDS)}); they are used as they are"]
    return [
        f"topic {deviation.topic.name} has {deviation.setting}={deviation.found}, expected {deviation.setting}={deviation.expected}; it is used as it is"
        for deviation in differing
    ]


def create_missing(topics: Sequence[Topic], settings: Settings) -> None:
    """Creates those of `topics` that the settings' Kafka lacks. Raises as `create_topics`."""
    existing = partitions_by_topic(settings.kafka)
    if missing := [topic for topic in topics if topic.name not in existing]:
        create_topics(
            settings.kafka, missing, replication_factor=settings.replication_factor, min_insync_replicas=settings.min_insync_replicas
        )


class Deviation(NamedTuple):
    """A topic setting on the broker that differs from topics.py. `found` is None when the broker does not have the setting."""

    topic: Topic
    setting: str
    found: str | None
    expected: str


def deviations(
    admin: AdminClient, topics: Sequence[Topic], partitions: Mapping[str, int], timeout_seconds: float = TIMEOUT_SECONDS
) -> list[Deviation]:
    """The settings of existing `topics` that differ from topics.py. partitions: partition count by topic name.

    Raises KafkaException or TimeoutError when the broker does not answer.
    """
    if not topics:
        return []
    actual = _settings(admin, [topic.name for topic in topics], timeout_seconds)
    differing = []
    for topic in topics:
        expected = {"partitions": str(topic.partitions), **topic.config}
        existing = {**actual[topic.name], "partitions": str(partitions[topic.name])}
        differing += [Deviation(topic, name, existing.get(name), value) for name, value in expected.items() if existing.get(name) != value]
    return differing


def is_compacted(kafka: KafkaCluster, topic: str) -> bool:
    """Whether the broker compacts the topic. Raises StreamgaugeError when its settings cannot be read."""
    return "compact" in (_settings_of(kafka, topic)["cleanup.policy"] or "")


def most_batch_bytes(kafka: KafkaCluster, topic: str) -> int | None:
    """The largest batch of records that the topic accepts; None if Kafka does not say. Raises StreamgaugeError when its settings cannot be read."""
    most = _settings_of(kafka, topic).get("max.message.bytes")
    return None if most is None else int(most)


def longest_kept_ms(kafka: KafkaCluster, topic: str) -> int | None:
    """The maximum age of a record in the topic: its retention and the age of a segment, which Kafka deletes as a whole. None if there is no maximum.

    Raises StreamgaugeError when its settings cannot be read.
    """
    config = _settings_of(kafka, topic)
    retention_ms = int(config["retention.ms"] or -1)
    is_bounded = "delete" in (config["cleanup.policy"] or "") and retention_ms >= 0
    return retention_ms + int(config["segment.ms"] or 0) if is_bounded else None


def _settings_of(kafka: KafkaCluster, topic: str) -> dict[str, str | None]:
    try:
        return _settings(kafka.admin(), [topic], TIMEOUT_SECONDS)[topic]
    except (KafkaException, TimeoutError) as error:
        msg = f"Kafka at {kafka} did not return the settings of topic {topic}: {reason(error, TIMEOUT_SECONDS)}; grant the right to describe them"
        raise StreamgaugeError(msg) from error


def _settings(admin: AdminClient, topics: Sequence[str], timeout_seconds: float) -> dict[str, dict[str, str | None]]:
    """The settings of each topic, by name."""
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in topics], request_timeout=timeout_seconds)
    return {
        resource.name: {name: entry.value for name, entry in answer.result(timeout_seconds).items()} for resource, answer in asked.items()
    }


def _wait_for_creation(name: str, created: "Future[None]") -> None:
    try:
        created.result(TIMEOUT_SECONDS)
    except (KafkaException, TimeoutError) as error:
        code = error.args[0].code() if isinstance(error, KafkaException) else KafkaError._TIMED_OUT
        if code in {KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT}:
            msg = f"Kafka did not create topic {name} within {TIMEOUT_SECONDS} s; see the broker's log, and try again"
            raise KafkaUnavailable(msg) from error
        if code != KafkaError.TOPIC_ALREADY_EXISTS:
            msg = f"Kafka refused to create topic {name}: {reason(error, TIMEOUT_SECONDS)}; create it by hand, or grant the right to create topics"
            raise StreamgaugeError(msg) from error


def _wait_for_leaders(kafka: KafkaCluster, partitions: Mapping[str, int], say: Say) -> None:
    """Waits until all partitions have a leader. Requests fail before that, just after a topic is created or a broker starts.

    Raises StreamgaugeError when Kafka stops answering, or a partition has none after LEADER_SECONDS.
    """
    leaderless = [TopicPartition(name, number) for name, count in partitions.items() for number in range(count)]

    def description() -> str:
        return f"a leader of topic {', '.join(sorted({partition.topic for partition in leaderless}))} in Kafka at {kafka}"

    for seconds in waiting(description, say):
        # A new client each time: a client caches "no leader".
        leaderless[:] = _without_leader(kafka.admin(), leaderless)
        if not leaderless:
            return
        partitions_by_topic(kafka)
        if seconds > LEADER_SECONDS:
            msg = f"waited {seconds:.0f} s for {description()}; start the broker that holds it, or delete the topic"
            raise StreamgaugeError(msg)
        time.sleep(seconds / 10)  # a new client is a new login: the longer it takes, the less often


def _without_leader(admin: AdminClient, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    answers = admin.list_offsets(dict.fromkeys(partitions, LATEST), request_timeout=TIMEOUT_SECONDS) if partitions else {}
    leaderless = []
    for partition, answer in answers.items():
        try:
            answer.result(TIMEOUT_SECONDS)
        except TimeoutError:
            leaderless.append(partition)
        except KafkaException as error:
            if not is_forbidden(error.args[0]):  # an authorization error means that the partition has a leader
                leaderless.append(partition)
    return leaderless
