"""`streamgauge ingest` on a real broker: the table is what a dictionary of the topic is, however the runs were cut, and what is wrong is said."""

import json
import random
import time

import deltalake
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from plain import read_topic, write_topic
from running import eventually, streamgauge, verify

from contract.create_topics import create_topics
from contract.topics import Topic
from infrastructure.kafka.topic_ends import partitions_by_topic
from infrastructure.settings import Settings

pytestmark = pytest.mark.delta

TOPIC, PARTITIONS = "orders.v1", 3
VERIFIED = (f"ingest-{TOPIC}", f"ingest-{TOPIC}-dead-letters")


@pytest.fixture
def topic(fresh):
    create_topics(fresh.kafka, [Topic(TOPIC, PARTITIONS)])
    return fresh


def send(settings, records):
    """Sends (key, value): what becomes JSON, bytes as they are, or None."""
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    for key, value in records:
        producer.produce(TOPIC, value if value is None or isinstance(value, bytes) else json.dumps(value), key)
        producer.poll(0)
    assert producer.flush(60) == 0, "Kafka did not take all records in 60 s"


def dictionary(settings):
    """The last usable value of each key of the topic, in plain Python."""
    table = {}
    for message in read_topic(settings, TOPIC):
        try:
            value = None if message.value() is None else json.loads(message.value())
        except ValueError:
            continue
        if message.key() is not None and (value is None or isinstance(value, dict)):
            table[message.key().decode()] = value
    return {key: value for key, value in table.items() if value is not None}


def held(settings, name="orders_v1"):
    """The table, by a reader that is not Spark: the fields that are not null, by key."""
    rows = deltalake.DeltaTable(settings.lake / name).to_pyarrow_table().to_pylist()
    table = {
        row["kafka_key"]: {field: value for field, value in row.items() if not field.startswith("kafka_") and value is not None}
        for row in rows
    }
    assert len(table) == len(rows), "a key has more than one row"
    return table


def ingest(settings, *options, **variables):
    done = streamgauge("ingest", TOPIC, *options, settings=settings, **variables)
    assert done.returncode == 0, done.stderr
    return done


def orders(rng, count, keys, first=0):
    """Updates, deletes, repeated and unusable records; from the middle on with a field more."""
    sent = []
    for number in range(first, first + count):
        fields = {"n": number, "price": rng.randrange(100) + 0.5, "lines": [{"item": "a", "count": number % 3}]}
        if number >= first + count // 2:
            fields["channel"] = "web"
        sent.append((f"order-{rng.randrange(keys)}", rng.choices([fields, None, b"{broken"], [93, 5, 2])[0]))
        if number % 40 == 0:
            sent += sent[-3:]
    return sent


def test_two_runs_give_what_one_gives_and_a_dictionary_and_verify_names_what_somebody_has_changed(topic, tmp_path):
    rng = random.Random(5)
    for part in range(2):
        send(topic, orders(rng, 150, 40, first=150 * part))
        said = ingest(topic, "--once").stderr
        if part == 0:
            assert f"table orders_v1: {topic.lake.absolute() / 'orders_v1'}" in said
            assert "columns: " in said
    assert held(topic) == dictionary(topic)
    found = verify(*VERIFIED, settings=topic)
    assert [found[name]["verdict"] for name in VERIFIED] == ["right", "right"]
    assert found[VERIFIED[0]]["rows"]["equal"] == len(dictionary(topic))

    elsewhere = Settings(home=tmp_path / "elsewhere", cache=topic.cache, kafka_bootstrap_servers=topic.bootstrap_servers)
    ingest(elsewhere, "--once")
    assert held(elsewhere) == held(topic)

    changed, deleted, *_ = held(topic)
    table = deltalake.DeltaTable(topic.lake / "orders_v1")
    table.update(updates={"n": "n + 1"}, predicate=f"kafka_key = '{changed}'")
    table.delete(f"kafka_key = '{deleted}'")
    rows = table.to_pyarrow_table()
    added = rows.slice(0, 1).set_column(0, "kafka_key", pa.array(["order-999"]))
    deltalake.write_deltalake(table, added, mode="append")
    found = verify(VERIFIED[0], settings=topic)[VERIFIED[0]]
    assert found["verdict"] == "wrong"
    assert {kind: count for kind, count in found["rows"].items() if count and kind != "compared"} == {
        "equal": len(dictionary(topic)) - 2,
        "missing": 1,
        "extra": 1,
        "different": 1,
    }
    assert {(one["kind"], one["where"]) for one in found["differences"]} == {
        ("different", changed),
        ("missing", deleted),
        ("extra", "order-999"),
    }
    deltalake.write_deltalake(table, table.to_pyarrow_table().drop_columns("price"), mode="overwrite", schema_mode="overwrite")
    assert verify(VERIFIED[0], settings=topic)[VERIFIED[0]]["rows"]["equal"] == 0, "a column is lost"


def test_verify_agrees_where_values_are_empty_at_first_numbers_long_and_names_many(topic):
    ids = {f"id-{number}": number for number in range(3000)}
    send(topic, [("a", b'{"s": {"x": null}, "l": [], "o": [{}], "t": "text"}'), ("b", b'{"v": 2}{"v": 3}'), ("c", {"ids": ids})])
    ingest(topic, "--once")
    send(topic, [("d", b'{"s": {"x": 1}, "l": [1.5], "o": [{"y": true}], "t": ' + str(2**256).encode() + b"}")])
    ingest(topic, "--once")
    table = held(topic)
    assert json.loads(table.pop("c")["ids"]) == ids
    assert table == {
        "a": {"s": {"x": None}, "l": [], "o": [{"y": None}], "t": "text"},
        "d": {"s": {"x": 1}, "l": [1.5], "o": [{"y": True}], "t": str(2**256)},
    }
    found = verify(*VERIFIED, settings=topic)
    assert [(found[name]["verdict"], found[name]["rows"]["equal"]) for name in VERIFIED] == [("right", 3), ("right", 1)]


def test_a_type_that_changes_gives_the_query_up_and_a_new_inference_keeps_all_rows(topic):
    send(topic, [("a", {"n": 1, "price": 10}), ("gone", {"n": 3, "price": 10})])
    ingest(topic, "--once")
    send(topic, [("a", {"n": "one", "price": 10}), ("a", {"n": 2, "price": 10.5}), (None, {"n": 2})])
    done = streamgauge("ingest", TOPIC, "--once", settings=topic)
    assert done.returncode == 2
    conflict, way_out = "field price is bigint in the table and ", f"`streamgauge ingest {TOPIC} --infer-schema`"
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: query ingest-{TOPIC} given up: {conflict}")
    assert way_out in last
    assert "Traceback" not in done.stderr
    assert held(topic) == {"a": {"n": 1, "price": 10}, "gone": {"n": 3, "price": 10}}
    said = ingest(topic, "--once", "--infer-schema").stderr
    assert "another type: price was bigint and is double" in said
    assert held(topic) == {"a": {"n": 2, "price": 10.5}, "gone": {"n": 3, "price": 10.0}}
    assert verify(VERIFIED[0], settings=topic)[VERIFIED[0]]["verdict"] == "right"

    reset = streamgauge("reset", f"ingest-{TOPIC}", "--yes", settings=topic)
    assert reset.returncode == 0, reset.stderr
    assert not list(topic.lake.glob("orders_v1*"))
    letters = [json.loads(letter.key()) for letter in read_topic(topic, "dead-letters")]
    assert [(letter["reader"], letter["topic"]) for letter in letters] == [(f"ingest-{TOPIC}", TOPIC)]


def test_on_a_kafka_without_any_topic_of_streamgauge_each_command_creates_those_that_it_writes(topic):
    names = ["dead-letters", "streaming-metrics", "query-states", "alerts"]
    admin = topic.kafka.admin()
    for deletion in admin.delete_topics([*names, "nest-logs", "verdicts"]).values():
        deletion.result()
    eventually(lambda: not partitions_by_topic(topic.kafka).keys() & {*names, "nest-logs", "verdicts"}, "the topics to be deleted")
    send(topic, [("a", {"n": 1}), ("b", b"{broken")])
    ingest(topic, "--once")
    assert held(topic) == {"a": {"n": 1}}
    assert len(read_topic(topic, "dead-letters")) == 1
    assert [name for name in [*names, "nest-logs"] if name not in partitions_by_topic(topic.kafka)] == ["nest-logs"]
    assert streamgauge("status", settings=topic).returncode == 0
    verify(f"ingest-{TOPIC}", settings=topic)
    assert len(read_topic(topic, "verdicts")) == 1


def test_one_run_brings_the_tables_of_several_topics_up_to_date(topic):
    create_topics(topic.kafka, [Topic("payments", 1)])
    for name in (TOPIC, "payments"):
        write_topic(topic, name, [b'{"n": 1}'], key=b"a", to=0)
        assert streamgauge("ingest", name, "--once", settings=topic).returncode == 0
        write_topic(topic, name, [b'{"n": 2}'], key=b"a", to=0)
    done = streamgauge("run", "--once", f"ingest-{TOPIC}", "ingest-payments", settings=topic)
    assert done.returncode == 0, done.stderr
    assert [held(topic, name) for name in ("orders_v1", "payments")] == [{"a": {"n": 2}}] * 2


def test_a_topic_without_keys_has_a_row_for_each_record_and_verify_names_what_somebody_has_changed(topic):
    sent = [(None, {"n": number, "kind": "click"}) for number in range(30)]
    send(topic, [*sent, (None, b"{broken")])
    refused = streamgauge("ingest", TOPIC, "--once", settings=topic)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.splitlines()[-1] == (
        f"error: no record of topic {TOPIC} has a key, so a table cannot have a row per key; `streamgauge ingest {TOPIC} --append` creates one with a row per record"
    )
    assert not list(topic.lake.glob("*"))
    ingest(topic, "--once", "--append")
    send(topic, [("a", {"n": 30}), ("a", {"n": 31}), ("a", None)])
    ingest(topic, "--once")  # it stays what it is
    table = deltalake.DeltaTable(topic.lake / "orders_v1")
    assert sorted((row["n"], row["kafka_key"]) for row in table.to_pyarrow_table().to_pylist()) == [
        *((number, None) for number in range(30)),
        (30, "a"),
        (31, "a"),
    ]
    found = verify(*VERIFIED, settings=topic)
    assert [(found[name]["verdict"], found[name]["rows"]["equal"]) for name in VERIFIED] == [("right", 32), ("right", 2)]

    rows = table.to_pyarrow_table().to_pylist()
    places = {row["n"]: f"partition {row['kafka_partition']}, offset {row['kafka_offset']}" for row in rows}
    table.update(updates={"kind": "'tap'"}, predicate="n = 1")
    table.delete("n = 2")
    table.update(updates={"kafka_key": "'b'"}, predicate="n = 30")
    deltalake.write_deltalake(table, table.to_pyarrow_table().slice(0, 1), mode="append")
    found = verify(VERIFIED[0], settings=topic)[VERIFIED[0]]
    assert found["verdict"] == "wrong"
    assert {(one["kind"], one["where"]) for one in found["differences"]} == {
        ("different", places[1]),
        ("missing", places[2]),
        ("different", places[30]),
    }
    assert "records with more than one row in the table: 1" in json.dumps(found)


def test_debug_shows_schema_plan_and_rows_and_leaves_the_real_table_alone(topic):
    send(topic, [("a", {"n": 1, "gone": None}), ("a", b"rubbish")])
    ingest(topic, "--once")

    def real():
        """Every file of the real table, schema and checkpoints, with its content's size and time; and the dead letters."""
        files = [path for folder in (topic.lake, topic.checkpoints) for path in folder.rglob("*") if path.is_file()]
        letters = [letter.key() for letter in read_topic(topic, "dead-letters")]
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files if "debug" not in str(path)}, letters

    before = real()
    send(topic, [("a", {"n": 1, "new": {"x": 1}}), ("b", b"rubbish")])
    said = ingest(topic, "--once", "--debug").stderr
    places = (
        topic.lake / "orders_v1_debug",
        topic.lake / "orders_v1_debug.schema.json",
        topic.checkpoints / f"ingest-{TOPIC}-debug-v1-append",
    )
    for part in (" |-- n: long (nullable = true)", "KafkaRelation", '"kafka_key":"a"', *(str(place) for place in places)):
        assert part in said
    assert held(topic, "orders_v1_debug") == {"a": {"n": 1, "new": {"x": 1}}}
    assert real() == before
    reset = streamgauge("reset", f"ingest-{TOPIC}-debug", "--yes", settings=topic)
    assert reset.returncode == 0, reset.stderr
    assert not any(place.exists() for place in places)
    assert real() == before

    assert "new in the topic: new, new.x" in ingest(topic, "--once", "--infer-schema").stderr
    assert held(topic) == {"a": {"n": 1, "new": {"x": 1}}}


def test_maintain_forgets_deletions_that_are_older_than_any_record_of_the_topic(fresh):
    create_topics(fresh.kafka, [Topic(TOPIC, 1, {"cleanup.policy": "delete", "retention.ms": "3600000", "segment.ms": "3600000"})])
    now_ms = round(time.time() * 1000)
    producer = Producer({"bootstrap.servers": fresh.bootstrap_servers})
    for key, hours in (("old", 3), ("older than the retention alone", 1.5), ("new", 0)):
        producer.produce(TOPIC, None, key, timestamp=now_ms - round(hours * 3_600_000))
    assert producer.flush(60) == 0
    ingest(fresh, "--once")
    assert deleted_keys(fresh) == {"old", "older than the retention alone", "new"}
    done = streamgauge("maintain", "orders_v1", settings=fresh)
    assert done.returncode == 0, done.stderr
    assert deleted_keys(fresh) == {"older than the retention alone", "new"}


def deleted_keys(settings):
    return set(deltalake.DeltaTable(settings.lake / "_deletions" / "orders_v1").to_pyarrow_table()["kafka_key"].to_pylist())


@pytest.mark.usefixtures("soon_away")
@pytest.mark.parametrize(
    ("arguments", "variables", "code", "told"),
    [
        (("no-such-topic",), {}, 2, "has no topic no-such-topic; correct the name, or create it"),
        ((TOPIC,), {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}, 3, "no Kafka answers at 127.0.0.1:9"),
    ],
)
def test_what_cannot_be_ingested_is_one_clear_error(settings, tmp_path, arguments, variables, code, told):
    done = streamgauge("ingest", *arguments, settings=settings, STREAMGAUGE_HOME=str(tmp_path), **variables)
    assert done.returncode == code
    assert done.stderr.startswith("error: ")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("lake/*"))
