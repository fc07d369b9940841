"""`streamgauge records` with a real broker and registry: what a mock has not, which is times, Avro, and topics that come and go."""

import json
import uuid

import pytest
from avro import V1, V2, change, serialized
from confluent_kafka import Producer
from plain import write_topic
from running import one_line_error, shared_spark, streamgauge, succeed

from contract.create_topics import create_topics
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka import result_table
from streamgauge.records.reader import TopicRecords
from streamgauge.records.start import Start


@pytest.fixture
def topic(settings):
    made = Topic(f"records-{uuid.uuid4()}", partitions=3, config={"retention.ms": "-1"})
    create_topics(settings.kafka, [made])
    return made.name


def records(settings, topic, *options):
    done = succeed("records", topic, "--format", "json", *options, settings=settings)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_avro_is_read_by_the_schema_of_each_record(registry, topic):
    values = [*serialized(registry, [change(1, at=1_767_225_600)]), *serialized(registry, [change(2, at=1_767_225_601)], V2)]
    write_topic(registry, topic, values, to=1, key=b"enwiki:Page 1")
    first, second = records(registry, topic)
    assert (first["value"]["id"], second["value"]["id"]) == (3_000_000_001, 3_000_000_002)
    assert first["value_schema_id"] != second["value_schema_id"]
    assert first["value_form"] == second["value_form"] == "avro"
    in_lines = succeed("records", topic, "--limit", "1", settings=registry).stdout
    assert f", schema {first['value_schema_id']}\n" in in_lines
    shared_spark()
    found = records(registry, topic, "--schema")[0]
    assert [(one["schema_id"], one["records"]) for one in found["avro"]] == sorted((one["value_schema_id"], 1) for one in (first, second))
    new = {field["name"] for field in json.loads(V2)["fields"]} - {field["name"] for field in json.loads(V1)["fields"]}
    of_spark = {one["schema_id"]: {field["name"] for field in one["spark"]["fields"]} for one in found["avro"]}
    assert of_spark[second["value_schema_id"]] - of_spark[first["value_schema_id"]] == new, "the second schema has more fields"


def test_it_begins_at_a_time(settings, topic):
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers})
    for minute in range(6):
        at_ms = 1_767_261_600_000 + 60_000 * minute
        producer.produce(topic, b"%d" % minute, partition=minute % 2, timestamp=at_ms)
    assert producer.flush(60) == 0
    assert [row["value"] for row in records(settings, topic, "--from", "2026-01-01T10:03:00Z")] == ["3", "4", "5"]
    assert [row["value"] for row in records(settings, topic, "--from", "2026-01-01T11:03:00.001+01:00", "--limit", "1")] == ["4"]
    assert records(settings, topic, "--from", "2026-01-01T10:06") == []


def test_a_topic_that_is_deleted_while_it_is_followed_is_one_line(settings, topic, monkeypatch):
    monkeypatch.setattr(result_table, "CHECK_SECONDS", 0)
    write_topic(settings, topic, [b"there"], to=0)
    followed, admin = TopicRecords(settings.kafka, topic, Start.of("beginning")), settings.kafka.admin()
    with followed.opened():
        assert [message.value() for message in followed.present()] == [b"there"]
        admin.delete_topics([topic])[topic].result(60)
        with pytest.raises(StreamgaugeError, match=topic):
            next(followed.arriving())


def test_a_topic_that_does_not_exist_is_not_created(settings):
    for _ in range(2):
        assert "no topic nest-loggs, but nest-logs" in one_line_error(streamgauge("records", "nest-loggs", settings=settings))


def test_the_schema_of_json_is_that_of_a_new_table(settings, topic):
    odd = b'{"id": 2, "tags": [null], "NAME": 1}'.replace(b"NAME", rb"\u009b")
    write_topic(settings, topic, [b'{"id": 1, "at": {"x": 1.5}}', odd, b"rubbish", None])
    shared_spark()
    assert succeed("records", topic, "--schema", settings=settings).stdout == (
        "JSON objects: 2, other bytes: 1, null: 1\n"
        "\n"
        "JSON, as the columns of `streamgauge ingest`:\n"
        "root\n"
        " |-- at: struct (nullable = true)\n"
        " |    |-- x: double (nullable = true)\n"
        " |-- id: long (nullable = true)\n"
        " |-- tags: array (nullable = true)\n"
        " |    |-- element: string (containsNull = true)\n"
        " |-- \\u009b: long (nullable = true)\n"
        "kept as JSON text: tags[] (an array without values)\n"
    )
    (found,) = records(settings, topic, "--schema")
    assert found["records"] == {"avro": 0, "json": 2, "null": 1, "other": 1}
    assert [field["name"] for field in found["json"]["spark"]["fields"]] == ["at", "id", "tags", "\x9b"]
