"""Deletes this project's topics from a Kafka of the user's own, and no other topic."""

from collections.abc import Collection
from itertools import chain

from confluent_kafka import KafkaError, KafkaException

from contract.domains import is_plain_name
from contract.query_status import read_statuses
from contract.topics import QUERY_STATES, topic_prefix
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.errors import forbidden, is_forbidden, reason
from infrastructure.kafka.topic_ends import TopicEnds, partitions_by_topic
from infrastructure.output.terminal import warn
from infrastructure.settings import Settings

ANSWER_SECONDS = 30


def own_topics(settings: Settings) -> dict[str, int]:
    """The project's topics that exist, each with the number of records that were ever written to it.

    Raises StreamgaugeError when Kafka cannot be reached or denies access, and when a query is running, here or on another machine.
    """
    existing = partitions_by_topic(settings.kafka)
    names = [name for name in existing if name.startswith(topic_prefix()) and is_plain_name(name.removeprefix(topic_prefix()))]
    partition_names = {name: [f"{name}-{number}" for number in existing[name]] for name in names}
    for status in read_statuses(settings, warn) if QUERY_STATES.name in partition_names else []:
        if status.has_process:
            msg = f"query {status.query} is {status.state} (its Spark driver is pid {status.pid} on {status.host}); stop that `streamgauge run` first"
            raise StreamgaugeError(msg)
    ends = TopicEnds(settings.kafka)
    ends.ask(chain.from_iterable(partition_names.values()))
    return {name: sum(ends.ends.get(partition, 0) for partition in partitions) for name, partitions in partition_names.items()}


def delete_topics(kafka: KafkaCluster, names: Collection[str]) -> None:
    """Deletes the topics. Raises StreamgaugeError for the first that Kafka does not delete; those before it are deleted."""
    admin = kafka.admin()  # requests end with their client
    requests = admin.delete_topics(list(names), operation_timeout=ANSWER_SECONDS) if names else {}
    for name, deleted in requests.items():
        try:
            deleted.result(ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            if isinstance(error, KafkaException) and is_forbidden(error.args[0]):
                raise forbidden(kafka, f"delete topic {name}") from error
            msg = f"Kafka at {kafka} did not delete topic {name}: {reason(error, ANSWER_SECONDS)}; check that it allows deletion (delete.topic.enable), and try again"
            raise StreamgaugeError(msg) from error
