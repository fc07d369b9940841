"""What the errors of a Kafka client say to a person: Kafka is away, or it is there and does not let this client in."""

import re
import time

from confluent_kafka import KafkaError, KafkaException

from contract.errors import StreamgaugeError
from contract.kafka.cluster import GROUP_PREFIX, KafkaCluster

ANSWER_SECONDS = 4.0
_CONNECTION = re.compile(r"^\S+://\S+: |\s*\(after \d+ms in state [^)]*\)")
"""What librdkafka writes around a reason: the connection before, and how long it took behind."""
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_NO_LEADER = {KafkaError._UNKNOWN_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION}
"""What a client is told of a topic that was created, or by a broker that was started, a moment ago."""
_JAVA_FORBIDDEN = re.compile(r"Not authorized to access (topics|group|cluster)[^\[\n]*:\s*\[?([^\]\n]+)", re.IGNORECASE)
_JAVA_REFUSED = re.compile(r"\b(?:SaslAuthenticationException|SslAuthenticationException): ([^\n]+)")


class KafkaAway(StreamgaugeError):  # noqa: N818 - it says what is the case, and whoever can waits for its end
    """Kafka does not answer; the same question may be answered later."""


class KafkaRefuses(StreamgaugeError):  # noqa: N818
    """Kafka is there, and does not let this client in, or not do what it is to do; that ends when a person acts."""


class TopicMissing(StreamgaugeError):  # noqa: N818
    """Kafka answers, and has no such topic (yet)."""


def reason(error: KafkaException | TimeoutError, seconds: float) -> str:
    """Why a request failed that was given so many `seconds`."""
    return error.args[0].str() if isinstance(error, KafkaException) else f"no answer within {seconds:g} s"


def no_answer(kafka: KafkaCluster, error: KafkaException) -> KafkaAway | KafkaRefuses:
    """That no broker answers, or that none lets this client in, which takes a few seconds to find out."""
    if is_forbidden(error.args[0]):
        return forbidden(kafka, "ask what it has")
    if error.args[0].code() in _NO_LEADER:
        return KafkaAway(f"Kafka at {kafka} answers, and no broker leads a partition that was asked for yet; see that all brokers run")
    why = refusal(kafka)
    if why and kafka.security.file:
        return KafkaRefuses(_refused(kafka, why))
    return KafkaAway(
        f"no Kafka answers at {kafka} ({why or error.args[0].str()}); start one with `streamgauge up`, or correct KAFKA_BOOTSTRAP_SERVERS"
    )


def raise_if_kept_out(kafka: KafkaCluster) -> None:
    """Raises KafkaRefuses when Kafka does not let this client in, before it is waited for in vain. One that is away is no matter here."""
    if kafka.security.file and (why := refusal(kafka)):
        raise KafkaRefuses(_refused(kafka, why))


def refusal(kafka: KafkaCluster) -> str | None:
    """Why Kafka does not let this client in, in librdkafka's words; None when it does, and when nothing answers within ANSWER_SECONDS."""
    heard: list[KafkaError] = []
    asking, deadline = kafka.admin({"error_cb": heard.append, "reconnect.backoff.max.ms": 500}), time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        try:
            asking.list_topics(timeout=0.5)
        except KafkaException:
            asking.poll(0)
        else:
            return None
        if why := next((error for error in heard if _tells_why(error)), None):
            return _CONNECTION.sub("", why.str()).rstrip(".")
        absent = {error.str().partition(": ")[0] for error in heard if _is_absent(error)}
        if len(absent) >= len(kafka.addresses):
            return None
    # A broker that is being started or stopped refuses connections in between.
    is_ended = any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in heard) and not any(map(_is_absent, heard))
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
    """Whether Kafka has understood, and not allowed it."""
    return error is not None and error.code() in _FORBIDDEN


def forbidden(kafka: KafkaCluster, what: str) -> KafkaRefuses:
    """That this client has not the right to do `what`."""
    who = kafka.security.user or "this client"
    return KafkaRefuses(f"Kafka at {kafka} does not allow {who} to {what}; grant the rights that docs/security.md lists")


def unreadable(kafka: KafkaCluster, topic: str, error: KafkaError | None) -> KafkaRefuses | None:
    """That this client has not the right to read `topic`, if that is what the `error` of a record says; None otherwise."""
    if error is None or not is_forbidden(error):
        return None
    return forbidden(
        kafka, f"be in a group {GROUP_PREFIX}*" if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED else f"read topic {topic}"
    )


def java_forbidden(kafka: KafkaCluster, text: str) -> str | None:
    """Which right lacks, if that is what the `text` of a Java client's exception says; None otherwise."""
    found = _JAVA_FORBIDDEN.search(text)
    return str(forbidden(kafka, f"use {found[1].lower()} {found[2]}")) if found else None


def java_refused(kafka: KafkaCluster, text: str) -> str | None:
    """That Kafka did not let a client in, if that is what the `text` of a Java client's exception says; None otherwise."""
    found = _JAVA_REFUSED.search(text)
    return _refused(kafka, found[1].strip()) if found else None


def no_topic(kafka: KafkaCluster, topic: str, seconds: float) -> StreamgaugeError:
    """That there is no such topic, or none that this client may see; Kafka is asked which, for at most so many `seconds`."""
    if is_hidden(kafka, topic, seconds):
        return forbidden(kafka, f"see topic {topic}")
    return TopicMissing(f"Kafka at {kafka} has no topic {topic}; `streamgauge up` creates it")


def is_hidden(kafka: KafkaCluster, topic: str, seconds: float) -> bool:
    """Whether this client may not even know whether there is such a topic. A consumer asks, for it alone creates none by asking."""
    asking = kafka.consumer()
    try:
        return is_forbidden(asking.list_topics(topic, seconds).topics[topic].error)
    except KafkaException:
        return False
    finally:
        asking.close()
