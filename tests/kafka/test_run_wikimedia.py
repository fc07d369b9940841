"""The Wikimedia queries on a real broker and a real registry. Changes are written, and results read, by confluent-kafka's own Avro."""

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
import verifying
from avro import V1, V2, change
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, record_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from plain import folded, read_topic
from running import eventually, running_queries, start_server, streamgauge

from infrastructure.errors import StreamgaugeError
from streamgauge.platform.registry import EmbeddedRegistry

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
EDIT_STATS = "wikimedia-edit-stats"
ROOT = Path(__file__).parents[2]


class Changes:
    """Writes changes with confluent-kafka's AvroSerializer, one after the other to the three partitions; remembers them all."""

    def __init__(self, settings):
        self.settings, self.written = settings, []
        self.registry = SchemaRegistryClient({"url": settings.registry_url})
        self._producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "linger.ms": 5})

    def write(self, changes, schema=V1, **options):
        serialize = AvroSerializer(self.registry, schema, conf=options)
        context = SerializationContext("wikimedia", MessageField.VALUE)
        for number, one in enumerate(changes):
            self.send(serialize(one, context), partition=number % 3)
            self.written.append(one)
        self.flush()

    def send(self, value, partition=0, key=None):
        self._producer.produce("wikimedia", value, key, partition=partition)

    def flush(self):
        assert self._producer.flush(60) == 0, "Kafka did not take all changes in 60 s"

    @property
    def windows(self):
        """(start, requested_by) -> counts of the distinct edits written, in plain Python."""
        edits = {one["meta"]["id"]: one for one in self.written if one["type"] == "edit"}
        starts = [(one["timestamp"] // 30 * 30 - back, one) for one in edits.values() for back in (0, 30)]
        return dict(Counter((start, "Bot" if one["bot"] else "Human") for start, one in starts))


def some_changes(count, *, first=0, seconds_apart=1, **fields):
    return [
        change(number, at=START + number * seconds_apart, bot=number % 3 == 0, kind="edit" if number % 4 else "log", **fields)
        for number in range(first, first + count)
    ]


def processed(settings):
    """What topic wikimedia.processed holds, read by confluent-kafka: (start, requested_by) -> counts. Checks keys and windows on the way."""
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": settings.registry_url}))
    context = SerializationContext("wikimedia.processed", MessageField.VALUE)
    table = {}
    for message in read_topic(settings, "wikimedia.processed"):
        row = deserialize(message.value(), context)
        window = {name: f"{row['window'][name]:%Y-%m-%dT%H:%M:%SZ}" for name in ("end", "start")}
        assert json.loads(message.key()) == {"requested_by": row["requested_by"], "window": window}
        assert row["window"]["end"] - row["window"]["start"] == timedelta(seconds=60)
        table[int(row["window"]["start"].timestamp()), row["requested_by"]] = row["counts"]
    return table


def run_once(settings, *queries, **variables):
    done = streamgauge("run", *queries, "--once", settings=settings, **variables)
    assert done.returncode == 0, done.stderr
    return done


def letters(settings):
    """reason -> values, of the dead letters."""
    found = [(dict(message.headers())["reason"].decode(), message.value()) for message in read_topic(settings, "dead-letters")]
    return sorted(found, key=lambda letter: (letter[0], letter[1] or b""))


def until_counted(settings, changes):
    """Waits until every change that was written is counted, and nothing else."""
    eventually(lambda: processed(settings) == changes.windows, f"{len(changes.written)} changes to be counted")


def archived(settings, columns):
    files = settings.lake / "wikimedia" / "changes" / "*" / "*.parquet"
    return duckdb.sql(f"SELECT {columns} FROM read_parquet('{files}', union_by_name = true) ORDER BY ALL").fetchall()


def test_one_run_counts_each_distinct_edit_in_its_two_windows(fresh_registry):
    changes = Changes(fresh_registry)
    changes.write([*some_changes(400), *some_changes(50)])
    run_once(fresh_registry, EDIT_STATS, "wikimedia-wiki-stats")
    assert processed(fresh_registry) == changes.windows
    assert sum(changes.windows.values()) == 2 * 300, "an edit counts in two windows"

    report = json.loads(streamgauge("report", EDIT_STATS, "--format", "json", settings=fresh_registry).stdout)
    rows = {(datetime.fromisoformat(row["window"]["start"]).timestamp(), row["requested_by"]): row["counts"] for row in report}
    assert rows == processed(fresh_registry)
    assert all(sorted(row) == ["counts", "requested_by", "window"] for row in report)

    per_wiki = folded(fresh_registry, "wikimedia-wiki-stats").values()
    assert sum(row["edits"] for row in per_wiki) == 300
    assert (sum(row["bytes_added"] for row in per_wiki), sum(row["bytes_removed"] for row in per_wiki)) == (3000, 0)
    assert letters(fresh_registry) == []


def test_records_of_other_serializers_are_read(fresh_registry):
    changes = Changes(fresh_registry)
    key = AvroSerializer(changes.registry, '"string"')("enwiki:A", SerializationContext("wikimedia", MessageField.KEY))
    value = AvroSerializer(changes.registry, V1)(change(61, at=START), SerializationContext("wikimedia", MessageField.VALUE))
    changes.send(value, key=key)
    changes.written.append(change(61, at=START))

    changes.write(some_changes(30), **{"subject.name.strategy": record_subject_name_strategy})

    names = ("type", "bot", "wiki", "namespace", "timestamp", "meta")
    by_hand = json.dumps(json.loads(V1) | {"fields": [field for field in json.loads(V1)["fields"] if field["name"] in names]})
    changes.registry.register_schema("wikimedia-value", Schema(by_hand, "AVRO"))
    few = [{name: one[name] for name in names} for one in some_changes(30, first=30)]
    changes.write(few, by_hand, **{"auto.register.schemas": False, "use.latest.version": True})

    run_once(fresh_registry, EDIT_STATS)
    assert processed(fresh_registry) == changes.windows
    assert letters(fresh_registry) == []


def test_what_cannot_be_read_is_a_dead_letter_and_its_neighbours_count(fresh_registry):
    changes = Changes(fresh_registry)
    changes.write(some_changes(30))
    good = read_topic(fresh_registry, "wikimedia")[0].value()
    rubbish = {
        b"": "empty",
        b"\x01" + good[1:]: "not in the Confluent wire format",
        good[:-4]: f"broken, or not what its schema says, id {int.from_bytes(good[1:5], 'big')}",
        **{b"\x00" + number.to_bytes(4, "big") + good[5:]: f"the registry has no Avro schema of id {number}" for number in (4711, 4712)},
    }
    for value in rubbish:
        changes.send(value)
    changes.write(some_changes(30, first=30))
    done = run_once(fresh_registry, EDIT_STATS, "wikimedia-wiki-stats", "wikimedia-archive")
    assert processed(fresh_registry) == changes.windows
    assert letters(fresh_registry) == sorted((reason, value) for value, reason in rubbish.items())
    assert "met an unknown schema" not in done.stderr, "a query was to know the ids of the newest records before it starts"
    assert len(archived(fresh_registry, "meta.id")) == 60


@pytest.mark.parametrize("starts", ["earliest", "latest"])
def test_a_query_that_is_earlier_than_the_first_schema_waits_for_it_fails_no_batch_and_skips_no_record(fresh_registry, starts):
    changes = Changes(fresh_registry)
    with running_queries(EDIT_STATS, settings=replace(fresh_registry, starting_offsets=starts)) as said:
        eventually(lambda: any(line.startswith(f"{EDIT_STATS} waits for a schema") for line in said), "the query to say that it waits")
        changes.write(some_changes(60))
        until_counted(fresh_registry, changes)
        assert not any("met an unknown schema" in line for line in said), said


def test_a_topic_without_a_schema_that_has_records_is_read_for_its_dead_letters(fresh_registry):
    changes = Changes(fresh_registry)
    changes.send(b"{}")
    changes.flush()
    with running_queries(EDIT_STATS, settings=fresh_registry):
        eventually(lambda: letters(fresh_registry) == [("not in the Confluent wire format", b"{}")], "the dead letter")


def test_a_schema_that_changes_while_it_runs_is_read_without_a_restart_by_hand(fresh_registry):
    changes = Changes(fresh_registry)
    changes.write(some_changes(60))
    with running_queries(EDIT_STATS, "wikimedia-archive", settings=fresh_registry) as said:
        until_counted(fresh_registry, changes)
        changes.write(some_changes(60, first=60, schema_uri="/mediawiki/recentchange/2.0.0"), V2)
        until_counted(fresh_registry, changes)
        changes.write(some_changes(60, first=120))
        until_counted(fresh_registry, changes)
        assert any(line.startswith(f"{EDIT_STATS} met an unknown schema") for line in said)
    verifying.run_once(fresh_registry, "wikimedia-archive")
    versions = {one["meta"]["id"]: one.get("schema_uri") for one in changes.written}
    assert dict(archived(fresh_registry, "meta.id, schema_uri")) == versions
    assert letters(fresh_registry) == []


def test_ids_of_no_schema_that_were_not_known_before_stop_the_first_query_once_and_none_after_it(fresh_registry, monkeypatch):
    def cannot_be_read(*_):
        msg = "records were deleted meanwhile"
        raise StreamgaugeError(msg)

    monkeypatch.setattr("pipeline.running.run.last_records", cannot_be_read)
    monkeypatch.setattr("pipeline.running.runner.FIRST_BATCH_SECONDS", 3600)  # else a slow machine starts the second before the first knows
    changes = Changes(fresh_registry)
    changes.write(some_changes(30))
    payload = read_topic(fresh_registry, "wikimedia")[0].value()[5:]
    for number in (4711, 4712):
        changes.send(b"\x00" + number.to_bytes(4, "big") + payload)
    changes.flush()
    with running_queries(EDIT_STATS, "wikimedia-wiki-stats", settings=fresh_registry) as said:
        until_counted(fresh_registry, changes)
        eventually(lambda: folded(fresh_registry, "wikimedia-wiki-stats"), "rows of the second query")
        assert sum("met an unknown schema" in line for line in said) == 1, said


def test_a_registry_goes_away_and_comes_back(fresh_registry, registry):
    changes, server = Changes(fresh_registry), EmbeddedRegistry(registry)
    changes.write(some_changes(60))
    with running_queries(EDIT_STATS, settings=fresh_registry) as said:
        until_counted(fresh_registry, changes)
        changes.registry.register_schema("wikimedia-value", Schema(V2, "AVRO"))
        newer = AvroSerializer(changes.registry, V2)
        context = SerializationContext("wikimedia", MessageField.VALUE)
        more = some_changes(60, first=61)
        first, *rest = [newer(one, context) for one in more]
        try:
            server.stop()
            changes.send(first)
            changes.flush()
            eventually(lambda: any("waits for the schema registry" in line for line in said), "the query to say that it waits")
        finally:  # other tests use this registry
            start_server(server)
        for value in rest:
            changes.send(value)
        changes.flush()
        changes.written += more
        until_counted(fresh_registry, changes)


def test_without_a_registry_the_other_domains_run(without_registry):
    with running_queries("nest-camera-stats", EDIT_STATS, settings=without_registry) as said:
        eventually(lambda: any("waits for the schema registry" in line for line in said), "the query to say that it waits")
        assert any("start one with `streamgauge up`" in line for line in said)
        eventually(lambda: "nest-camera-stats runs" in said, "the other domain to run")


def test_what_the_documentation_shows_runs_and_gives_the_same_numbers(fresh_registry):
    changes = Changes(fresh_registry)
    changes.write([*some_changes(120), *some_changes(30)])
    verifying.run_once(fresh_registry, EDIT_STATS, "wikimedia-archive")
    blocks = dict(re.findall(r"^```(python|sql)\n(.*?)^```", (ROOT / "docs" / "wikimedia.md").read_text(), re.DOTALL | re.MULTILINE))

    reader = (
        blocks["python"]
        .replace("127.0.0.1:9092", fresh_registry.bootstrap_servers)
        .replace("127.0.0.1:8081", registry_host(fresh_registry))
    )
    printed = subprocess.run([sys.executable, "-c", reader], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    windows = {(f"{datetime.fromtimestamp(start, UTC):%H:%M:%S}", who): count for (start, who), count in changes.windows.items()}
    assert {(start, who): int(count) for start, _, _, who, count in rows} == windows

    query = blocks["sql"].replace(".streamgauge", str(fresh_registry.home))
    by_humans = sum(one["type"] == "edit" and not one["bot"] for one in changes.written[:120])
    assert duckdb.sql(query).fetchall() == [("enwiki", by_humans, 10 * by_humans)]


def registry_host(settings):
    return f"127.0.0.1:{settings.registry_port}"
