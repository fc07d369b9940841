"""What exceptions of Java's clients say of rights and of being let in, and what is neither."""

import gc
import weakref

import pytest
from messages import absent

from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.errors import java_forbidden, java_refused, refusal
from infrastructure.security.client_security import ClientSecurity

KAFKA = KafkaCluster("broker:9093", ClientSecurity(file="client.properties", user="app"))


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("TopicAuthorizationException: Not authorized to access topics: [nest-logs]\n\tat org", "topic", "nest-logs"),
        ("GroupAuthorizationException: Not authorized to access group: streamgauge-1", "group", "streamgauge-1"),
    ],
)
def test_a_right_that_lacks(text, kind, name):
    line = java_forbidden(KAFKA, f"Job aborted: org.apache.kafka.common.errors.{text}")
    assert absent(line, "broker:9093", "app", kind, name, "docs/security.md") == []
    assert "\n" not in line


def test_a_client_that_is_not_let_in():
    text = "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed\n\tat org.apache"
    line = java_refused(KAFKA, text)
    assert absent(line, "broker:9093", "app", "Authentication failed", "`streamgauge doctor`") == []
    assert "\n" not in line


def test_what_is_neither():
    text = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment"
    assert (java_forbidden(KAFKA, text), java_refused(KAFKA, text)) == (None, None)


def test_what_is_handled_while_kafka_is_asked_why_is_freed():
    """Else its traceback keeps modules until the process ends, and DuckDB complains about that on standard error."""

    class Kept:
        pass

    def fail():
        kept = Kept()
        try:
            int("none")
        except ValueError:
            refusal(KafkaCluster("127.0.0.1:1"))
        return weakref.ref(kept)

    kept = fail()
    gc.collect()
    assert kept() is None
