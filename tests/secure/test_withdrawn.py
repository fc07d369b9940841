"""A right or a password that is withdrawn while a query runs: the query is given up with one line, and later continues without a loss."""

import uuid
from dataclasses import replace

import pytest
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from plain import folded, write_topic
from rights import Right
from running import shared_spark

from contract.create_topics import create_topics
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.process.stop_signals import StopRequest
from pipeline.query import Query
from pipeline.running.runner import Runner
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import KafkaTopic


def withdraw_right(secured, name, topic):
    """Removes every right of the user on `topic`."""
    matched = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{name}", None, AclOperation.ANY, AclPermissionType.ANY
    )
    admin = secured.admin.kafka.admin()
    (done,) = admin.delete_acls([matched]).values()
    assert done.result(), f"the broker knew no right of {name} on {topic}"


def withdraw_password(secured, name, _):
    """Gives the user another password. The broker asks for it again after a while (REAUTHENTICATION_MS)."""
    secured.user(name)


@pytest.mark.parametrize(
    ("withdraw", "told"),
    [(withdraw_right, "docs/security.md"), (withdraw_password, "SASL authentication error")],
    ids=["right", "password"],
)
def test_what_is_withdrawn_gives_the_query_up_and_nothing_is_lost(secured, withdraw, told):
    name = f"withdrawn-{uuid.uuid4()}"
    source, result = (Topic(f"{name}-{what}", partitions=1) for what in ("source", "result"))
    create_topics(secured.admin.kafka, [source, result])
    rights = [Right("READ", source.name), Right("WRITE", result.name), Right("READ", result.name)]
    password = secured.user(name)
    secured.grant(name, rights)
    settings = replace(secured.come("SCRAM", password), restart_limit=1)
    query = Query(
        name,
        source=KafkaTopic(source.name),
        decode=lambda records: records.selectExpr("cast(value AS string) AS value"),
        sink=CompactedTopic(result, ("value",)),
        mode="append",
    )
    said, stop = [], StopRequest()

    def say(line):
        said.append(line)  # a warning that its state could not be published may come first
        if line == f"{name} runs" and said.count(line) == 1:
            withdraw(secured, name, source.name)
            write_topic(secured.admin, source.name, [b"while withdrawn"])

    write_topic(secured.admin, source.name, [b"before"])
    with pytest.raises(StreamgaugeError, match=name):
        Runner(shared_spark(), settings, say, stop).run([query])
    given_up = next(line for line in said if line.startswith(f"{name} is given up: "))
    assert told in given_up, said
    assert not any("\n" in line for line in said), said

    secured.grant(name, rights)
    restored = secured.come("SCRAM", secured.user(name), settings.home)
    Runner(shared_spark(), restored, said.append, once=True).run([query])
    values = {row["value"] for row in folded(secured.admin, result.name).values()}
    assert values == {"before", "while withdrawn"}
