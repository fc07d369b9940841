"""The newest records of a topic on a real broker: of each partition, once and again."""

import uuid

import pytest
from plain import write_topic

from contract.create_topics import create_topics
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.recent_records import last_records


@pytest.fixture
def topic(settings):
    made = Topic(f"recent-{uuid.uuid4()}", partitions=3)
    create_topics(settings.kafka, [made])
    return made.name


def values(messages):
    return sorted(message.value().decode() for message in messages)


def test_the_last_records_of_each_partition_are_read(settings, topic):
    assert last_records(settings.kafka, topic, 2) == []
    write_topic(settings, topic, [b"%02d" % number for number in range(20)], partitions=2)
    found = last_records(settings.kafka, topic, 2)
    assert values(found) == ["16", "17", "18", "19"], "the third partition is empty"
    assert [message.timestamp() for message in found] == sorted(message.timestamp() for message in found), "the oldest first"
    assert last_records(settings.kafka, topic, 1, lambda message: message.offset()) == [9, 9]


def test_a_topic_that_is_not_there_is_named(settings):
    with pytest.raises(
        StreamgaugeError, match=r"has no topic nowhere; correct the name, or create it: `streamgauge up` creates the topics of Streamgauge$"
    ):
        last_records(settings.kafka, "nowhere", 1)
