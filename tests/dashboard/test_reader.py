"""Result topics are read whole, stay current, and are read again when Kafka comes back."""

import dataclasses
import threading

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from messages import refused
from running import RETRY_SECONDS, start_server

from contract.create_topics import create_topics
from contract.domains.nest import NEST_CAMERA_STATS
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.follower import Follower, Snapshot, per_snapshot
from infrastructure.kafka.result_table import TableReader, read_to_end
from streamgauge.platform.kafka import EmbeddedKafka

NOBODY_LISTENS = "127.0.0.1:1"


@pytest.fixture
def follower(topic):
    follower = Follower(topic.kafka, topic.name)
    yield follower
    follower.stop()


def counts(rows):
    return {row["zip_code"]: row["count"] for row in rows}


def test_an_empty_topic_is_read_to_its_end(topic):
    assert read_to_end(topic.kafka, topic.name).rows() == []


def test_a_topic_is_read_to_its_end(topic):
    topic.count("94107", 1)
    topic.count("94110", 5)
    topic.count("94107", 2)
    topic.count("94110", None)

    assert counts(read_to_end(topic.kafka, topic.name).rows()) == {"94107": 2}


def test_last_offsets_that_hold_no_record_are_no_reason_to_wait(topic, until):
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers, "transactional.id": topic.name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic.name, key="a", value="{}")
    producer.commit_transaction(30)  # leaves a marker behind the record, at an offset that no consumer is given

    def rows():
        return read_to_end(topic.kafka, topic.name).rows()

    # The broker writes the marker a moment after it has said that the transaction is committed.
    assert until(rows, bool, "the committed record was to be seen") == [{}]


def test_a_missing_topic_is_named_with_what_to_do(settings):
    with pytest.raises(StreamgaugeError, match="has no topic no-such-topic; correct the name, or create it"):
        read_to_end(settings.kafka, "no-such-topic")


def test_a_kafka_that_does_not_answer_is_named_with_what_to_do():
    with pytest.raises(
        StreamgaugeError,
        match=rf"^no Kafka answers at {NOBODY_LISTENS} \(.+\); if KAFKA_BOOTSTRAP_SERVERS names it, start that broker [^\n]+$",
    ):
        read_to_end(KafkaCluster(NOBODY_LISTENS), NEST_CAMERA_STATS.name)


def test_a_follower_stays_current(topic, follower, until):
    topic.count("94107", 1)
    until(lambda: counts(follower.snapshot.rows), {"94107": 1}.__eq__, "a row was to appear")
    topic.count("94107", 2)
    until(lambda: counts(follower.snapshot.rows), {"94107": 2}.__eq__, "the row was to change")
    topic.count("94107", None)
    until(lambda: counts(follower.snapshot.rows), {}.__eq__, "the row was to go")


def test_a_snapshot_never_changes(topic, follower, until):
    topic.count("94107", 1)
    before = until(lambda: follower.snapshot, lambda seen: len(seen.rows) == 1, "a row was to appear")
    topic.count("94110", 5)
    until(lambda: follower.snapshot, lambda seen: len(seen.rows) == 2, "a second row was to appear")

    assert counts(before.rows) == {"94107": 1}


def test_a_follower_that_is_stopped_leaves_no_thread(topic, until):
    follower = Follower(topic.kafka, topic.name)
    until(lambda: follower.snapshot, lambda seen: seen.is_read, "the topic was to be read")
    follower.stop()

    assert f"follow {topic.name}" not in {thread.name for thread in threading.enumerate()}


def test_a_topic_that_was_deleted_and_created_anew_is_read_anew(topic, follower, until):
    topic.count("94107", 1)
    until(lambda: counts(follower.snapshot.rows), {"94107": 1}.__eq__, "a row was to appear")
    admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
    admin.delete_topics([topic.name])[topic.name].result()
    failed = until(lambda: follower.snapshot, lambda seen: seen.error is not None, "the loss of the topic was to be noticed")
    assert counts(failed.rows) == {"94107": 1}

    create_topics(topic.kafka, [dataclasses.replace(NEST_CAMERA_STATS, plain_name=topic.name)])
    topic.count("94110", 5)
    until(
        lambda: (follower.snapshot.error, counts(follower.snapshot.rows)),
        (None, {"94110": 5}).__eq__,
        "only the new row was to be there",
    )


def test_a_topic_that_was_created_anew_and_has_more_records_than_before_is_noticed(topic, until):
    topic.count("94107", 1)
    with TableReader(topic.kafka, topic.name).opened() as reader:
        reader.read_to_end()
        reader.check()
        admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
        admin.delete_topics([topic.name])[topic.name].result()
        until(lambda: admin.list_topics(timeout=RETRY_SECONDS).topics, lambda topics: topic.name not in topics, "the topic was to be gone")
        create_topics(topic.kafka, [dataclasses.replace(NEST_CAMERA_STATS, plain_name=topic.name)])
        for zip_code in ("94110", "94111", "94112"):
            topic.count(zip_code, 5)
        with refused(topic.name, "recreated"):
            reader.check()


def test_a_partition_that_was_added_is_read_too(topic, follower, until):
    topic.count("94107", 1)
    until(lambda: counts(follower.snapshot.rows), {"94107": 1}.__eq__, "a row was to appear")
    admin = AdminClient({"bootstrap.servers": topic.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result()
    producer = Producer({"bootstrap.servers": topic.bootstrap_servers})
    producer.produce(topic.name, key="b", value='{"zip_code": "94110", "count": 2}', partition=1)
    assert producer.flush(RETRY_SECONDS) == 0
    until(lambda: counts(follower.snapshot.rows), {"94107": 1, "94110": 2}.__eq__, "the row of the new partition was to appear")
    assert follower.snapshot.error is None


def test_an_error_about_a_topic_is_no_empty_topic(settings):
    with refused("a/name", "cannot be read", "Invalid topic"):
        read_to_end(settings.kafka, "a/name")


def test_a_follower_keeps_its_rows_while_kafka_is_away_and_goes_on_afterwards(own_broker, until):
    broker, follower = EmbeddedKafka(own_broker), Follower(own_broker.kafka, NEST_CAMERA_STATS.name)
    producer = Producer({"bootstrap.servers": own_broker.bootstrap_servers, "log_level": 0})
    producer.produce(NEST_CAMERA_STATS.name, key="a", value='{"zip_code": "94107", "count": 1}')
    assert producer.flush(RETRY_SECONDS) == 0
    until(lambda: counts(follower.snapshot.rows), {"94107": 1}.__eq__, "a row was to appear")

    broker.stop()
    away = until(lambda: follower.snapshot, lambda seen: seen.error is not None, "the loss of Kafka was to be noticed")
    assert own_broker.bootstrap_servers in away.error
    assert counts(away.rows) == {"94107": 1}

    start_server(broker)
    producer.produce(NEST_CAMERA_STATS.name, key="a", value='{"zip_code": "94107", "count": 2}')
    assert producer.flush(RETRY_SECONDS) == 0
    until(lambda: (follower.snapshot.error, counts(follower.snapshot.rows)), (None, {"94107": 2}).__eq__, "the reader was to go on")
    follower.stop()


def test_what_is_made_of_a_snapshot_is_made_once_for_its_filters_and_goes_with_it():
    made = []

    @per_snapshot
    def listed(snapshot, *filters):
        made.append((snapshot, *filters))
        return [filters]

    first, second = Snapshot("kafka", "topic"), Snapshot("kafka", "topic")
    assert listed(first, "94107") is listed(first, "94107")
    assert listed(first, "94110") == [("94110",)]
    assert listed(second, "94107") == [("94107",)]
    assert made == [(first, "94107"), (first, "94110"), (second, "94107")]
