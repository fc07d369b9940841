"""Error messages for Kafka client errors. Distinguishes a Kafka that is unavailable from one that refuses this client."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaError, KafkaException

from infrastructure.errors import StreamgaugeError, Unavailable
from infrastructure.kafka.cluster import KafkaCluster

ANSWER_SECONDS = 4.0
_CONNECTION = re.compile(r"^\S+://\S+: |\s*\(after \d+ms in state [^)]*\)")
"""What librdkafka adds around a reason: the connection before it, the elapsed time after it."""
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_NO_LEADER = {KafkaError._UNKNOWN_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
"""Errors for a topic just created, or from a broker just started."""
CLOCKS_DIFFER = (
    "this machine's clock is further ahead of the broker's than the topic allows (message.timestamp.after.max.ms, an hour by default): "
    "set the clock that is wrong"
)
"""Why a broker refuses a record for its timestamp."""
_JAVA_FORBIDDEN = re.compile(r"Not authorized to access (topics|group|cluster)[^\[\n]*:\s*\[?([^\]\n]+)", re.IGNORECASE)
_JAVA_REFUSED = re.compile(r"\b(?:SaslAuthenticationException|SslAuthenticationException): ([^\n]+)")


class KafkaUnavailable(Unavailable):
    """Kafka does not answer."""

    server = "Kafka"


class KafkaRefuses(StreamgaugeError):  # noqa: N818
    """Kafka answers but denies authentication or authorization. A person has to fix it."""


class TopicMissing(StreamgaugeError):  # noqa: N818
    """Kafka answers, but the topic does not exist (yet)."""


class BatchesRefused(Unavailable):
    """Kafka answers, but a topic takes no batch of the size that Spark's producers send."""

    server = "its result topic"

    def __init__(self, topic: str, most_bytes: int, batch_bytes: int) -> None:
        super().__init__(
            f"topic {topic} takes batches of at most {most_bytes:,} bytes (max.message.bytes), and the query sends up to {batch_bytes:,}; "
            "raise that setting of the topic, or lower batch.size if STREAMGAUGE_KAFKA_OPTIONS sets it, and the query continues"
        )


def reason(error: KafkaException | TimeoutError, seconds: float) -> str:
    """The reason of a failed request. seconds: the request's timeout."""
    return error.args[0].str() if isinstance(error, KafkaException) else f"no answer within {seconds:g} s"


def no_answer(kafka: KafkaCluster, error: KafkaException) -> KafkaUnavailable | KafkaRefuses:
    """The error for a failed request: KafkaUnavailable, or KafkaRefuses if Kafka rejects this client. Finding out takes a few seconds."""
    if is_forbidden(error.args[0]):
        return forbidden(kafka, "ask what it has")
    if error.args[0].code() in _NO_LEADER:
        return KafkaUnavailable(f"Kafka at {kafka} answers, but a partition has no leader yet; check that all brokers run")
    why = refusal(kafka)
    if why and kafka.security.file:
        return KafkaRefuses(_refused(kafka, why))
    return KafkaUnavailable(
        f"no Kafka answers at {kafka} ({why or error.args[0].str()}); if KAFKA_BOOTSTRAP_SERVERS names it, start that broker or correct the "
        "setting, otherwise start one with `streamgauge up`"
    )


def raise_if_access_denied(kafka: KafkaCluster) -> None:
    """Raises KafkaRefuses when Kafka rejects this client, so that callers do not wait in vain. Does not raise when Kafka is unavailable."""
    if kafka.security.file and (why := refusal(kafka)):
        raise KafkaRefuses(_refused(kafka, why))


def refusal(kafka: KafkaCluster) -> str | None:
    """Why Kafka rejects this client, in librdkafka's words. None if it accepts it, or if nothing answers within ANSWER_SECONDS."""
    # A callback of librdkafka never frees the exception that its thread handles, nor the frames in its traceback. A new thread handles none.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_refusal, kafka).result()


def _refusal(kafka: KafkaCluster) -> str | None:
    reported: list[KafkaError] = []
    admin, deadline = kafka.admin({"error_cb": reported.append, "reconnect.backoff.max.ms": 500}), time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        try:
            admin.list_topics(timeout=0.5)
        except KafkaException:
            admin.poll(0)
        else:
            return None
        if why := next((error for error in reported if _tells_why(error)), None):
            return _CONNECTION.sub("", why.str()).rstrip(".")
        absent = {error.str().partition(": ")[0] for error in reported if _is_absent(error)}
        if len(absent) >= len(kafka.addresses):
            return None
    # A broker that is starting or stopping also refuses connections at times.
    is_ended = any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in reported) and not any(map(_is_absent, reported))
    return (
        f"it closes every connection, as a listener for another security.protocol than {kafka.security.protocol} does" if is_ended else None
    )


def _tells_why(error: KafkaError) -> bool:
    return error.code() in {KafkaError._AUTHENTICATION, KafkaError._SSL} or " alert " in error.str() or "listener?" in error.str()


def _is_absent(error: KafkaError) -> bool:
    return error.code() == KafkaError._RESOLVE or "Connect to" in error.str()


def _refused(kafka: KafkaCluster, why: str) -> str:
    return f"Kafka at {kafka} does not let {kafka.security.user or 'this client'} in: {why}; `streamgauge doctor` says more"


def is_forbidden(error: KafkaError | None) -> bool:
    """Whether Kafka denied authorization."""
    return error is not None and error.code() in _FORBIDDEN


def forbidden(kafka: KafkaCluster, action: str) -> KafkaRefuses:
    """The error for a missing permission. action: such as "read topic nest-logs"."""
    who = kafka.security.user or "this client"
    return KafkaRefuses(f"Kafka at {kafka} does not allow {who} to {action}; grant the rights that docs/security.md lists")


def java_forbidden(kafka: KafkaCluster, text: str) -> str | None:
    """The error for a missing permission, if `text` of a Java client's exception says so. None otherwise."""
    match = _JAVA_FORBIDDEN.search(text)
    return str(forbidden(kafka, f"use {match[1].lower()} {match[2]}")) if match else None


def java_refused(kafka: KafkaCluster, text: str) -> str | None:
    """The error for failed authentication, if `text` of a Java client's exception says so. None otherwise."""
    match = _JAVA_REFUSED.search(text)
    return _refused(kafka, match[1].strip()) if match else None


def no_topic(kafka: KafkaCluster, topic: str, seconds: float) -> StreamgaugeError:
    """The error for a topic that does not exist or is hidden from this client. Asks Kafka which, for at most `seconds`."""
    if is_hidden(kafka, topic, seconds):
        return forbidden(kafka, f"see topic {topic}")
    return TopicMissing(
        f"Kafka at {kafka} has no topic {topic}; correct the name, or create it: `streamgauge up` creates the topics of Streamgauge"
    )


def is_hidden(kafka: KafkaCluster, topic: str, seconds: float) -> bool:
    """Whether this client lacks permission to see the topic. Uses a consumer, because only a consumer's request never creates the topic."""
    consumer = kafka.consumer()
    try:
        return is_forbidden(consumer.list_topics(topic, seconds).topics[topic].error)
    except KafkaException:
        return False
    finally:
        consumer.close()
