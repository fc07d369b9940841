"""`streamgauge produce wikimedia` on a real broker and a real registry: what arrives, who can read it, and outages."""

import json
import signal
import subprocess
import sys
import uuid
from collections import Counter
from contextlib import contextmanager

import orjson
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from plain import read_topic
from running import environment, eventually, start_server, streamgauge
from sse_server import drop_after, half_an_event_after, hold, refuse, repeat_from, serving, stall_after

from infrastructure.storage.data_files import data_file
from producers.wikimedia.avro import UNKNOWN_SCHEMA_ID
from producers.wikimedia.simulation import Simulation, simulate
from streamgauge.platform.registry import EmbeddedRegistry

START = "2026-01-01T00:00:00Z"
SIMULATED = ("produce", "wikimedia", "--json", "--unpaced", "--start", START)
LIVE = ("produce", "wikimedia", "--json", "--live")
VERSION_2 = data_file("schemas/wikimedia-value.v2.avsc")


def summary_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def reader(settings):
    """confluent-kafka's own, which knows nothing of the producer."""
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": settings.registry_url}))
    return lambda message: deserialize(message.value(), SerializationContext(message.topic(), MessageField.VALUE))


def told(count, first=0):
    """JSON events of their own ids, so that tests can share a topic."""
    from datetime import UTC, datetime

    events = [orjson.loads(text) for text in simulate(Simulation(datetime(2026, 2, 1, tzinfo=UTC), seed=first, limit=count))]
    for event in events:
        event["meta"]["id"] = str(uuid.uuid4())
    return events


def ids_in(settings, source):
    """How often each meta.id is in the topic, by its header."""
    headers = [dict(message.headers()) for message in read_topic(settings, "wikimedia")]
    return Counter(one["event_id"].decode() for one in headers if one["source"] == source.encode())


def ids_of(events):
    return Counter(event["meta"]["id"] for event in events)


@contextmanager
def running(*arguments, settings, **variables):
    """The command, in the background; stopped in the end."""
    command = [sys.executable, "-m", "streamgauge.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(settings, **variables))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def stopped(process):
    """Its standard output and error, after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    return process.communicate()


def test_another_implementation_reads_what_was_simulated(fresh_registry):
    summary = summary_of(streamgauge(*SIMULATED, "--limit", "3000", settings=fresh_registry))
    messages = read_topic(fresh_registry, "wikimedia")
    read = reader(fresh_registry)
    rows = [read(message) for message in messages]
    assert summary["events"] == len(messages) == 3000
    assert summary["edits"] == sum(row["type"] == "edit" for row in rows)
    assert all(message.key().decode() == f"{row['wiki']}:{row['title']}" for message, row in zip(messages, rows, strict=True))
    assert all(dict(message.headers())["source"] == b"simulated" for message in messages)
    partitions = {}
    for message, row in zip(messages, rows, strict=True):
        partitions.setdefault((row["wiki"], row["title"]), []).append((message.partition(), row["meta"]["offset"]))
    assert all(len({partition for partition, _ in page}) == 1 and page == sorted(page) for page in partitions.values()), (
        "a page is in order"
    )


def test_faults_are_what_the_summary_says(fresh_registry):
    faults = ("--late", "0.05", "--duplicates", "0.05", "--corrupt", "0.05", "--too-late", "0.02")
    lateness = {"STREAMGAUGE_WIKIMEDIA_WATERMARK": "5 seconds"}
    summary = summary_of(streamgauge(*SIMULATED, "--limit", "2000", *faults, settings=fresh_registry, **lateness))
    read, ids, unreadable = reader(fresh_registry), Counter(), []
    for message in read_topic(fresh_registry, "wikimedia"):
        try:
            ids[read(message)["meta"]["id"]] += 1
        except Exception:
            unreadable.append(message.value() or b"")
    damaged = [value for value in unreadable if value] + [b""] * sum(not value for value in unreadable)
    assert len(ids) == summary["distinct_events"] == 2000
    assert ids.total() - len(ids) == summary["duplicates"] > 0
    assert summary["late"] > 0
    assert summary["too_late"] > 0
    known = SchemaRegistryClient({"url": fresh_registry.registry_url}).get_latest_version("wikimedia-value").schema_id
    assert {int.from_bytes(value[1:5]) for value in damaged if value[:1] == b"\0"} >= {known, UNKNOWN_SCHEMA_ID}
    assert any(value[:1] == b"\x07" for value in damaged)


def test_another_version_of_the_schema_and_back_again(fresh_registry):
    for arguments in ((), ("--schema", str(VERSION_2)), ()):
        summary_of(streamgauge(*SIMULATED, "--limit", "10", *arguments, settings=fresh_registry))
    messages = read_topic(fresh_registry, "wikimedia")
    ids = Counter(int.from_bytes(message.value()[1:5]) for message in messages)
    assert sorted(ids.values()) == [10, 20]
    rows = [reader(fresh_registry)(message) for message in messages]
    assert Counter(row.get("schema_uri") for row in rows) == {"/mediawiki/recentchange/1.0.0": 10, None: 20}


def test_an_incompatible_schema_is_refused_with_the_registry_s_message(registry, tmp_path):
    summary_of(streamgauge(*SIMULATED, "--limit", "1", settings=registry))
    unreadable = orjson.loads(data_file("schemas/wikimedia-value.avsc").read_bytes())
    unreadable["fields"].append({"name": "must_be_there", "type": "string"})
    (tmp_path / "unreadable.avsc").write_bytes(orjson.dumps(unreadable))
    done = streamgauge(*SIMULATED, "--limit", "1", "--schema", str(tmp_path / "unreadable.avsc"), settings=registry)
    assert done.returncode == 2
    assert "refuses the schema of wikimedia-value" in done.stderr
    assert "must_be_there" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_recording_with_bad_lines(fresh_registry, tmp_path):
    events = [*told(20), {"meta": {"domain": "canary"}}]
    bad = [b"<html>", b'{"meta": {}}', orjson.dumps(events[0])[:-20]]
    (tmp_path / "file").write_bytes(b"\n".join([*map(orjson.dumps, events), *bad]))
    done = streamgauge("produce", "wikimedia", "--json", "--unpaced", "--file", str(tmp_path / "file"), settings=fresh_registry)
    summary = summary_of(done)
    assert (summary["distinct_events"], summary["corrupt"], summary["canaries"]) == (20, 3, 1)
    assert ids_in(fresh_registry, "recorded") == ids_of(events[:20])
    letters = read_topic(fresh_registry, "dead-letters")
    assert [letter.value() for letter in letters] == bad
    assert [dict(letter.headers())["reason"].decode()[:8] for letter in letters] == ["not JSON", "meta.id:", "not JSON"]
    assert orjson.loads(letters[0].key())["topic"] == "wikimedia"


def test_a_live_stream_that_misbehaves_arrives_whole_and_once(registry):
    events = told(60)
    script = [drop_after(10), refuse(503), half_an_event_after(5), stall_after(4), repeat_from(4, 12), refuse(429, Retry_After="1"), hold]
    with serving(events, *script) as server:
        done = streamgauge(*LIVE, "--limit", "60", settings=registry, WIKIMEDIA_URL=server.url, WIKIMEDIA_SILENCE_SECONDS="1")
        summary = summary_of(done)
        asked = [request.get("Last-Event-ID") for request in server.requests]
    found = ids_in(registry, "live")
    assert {event_id: found[event_id] for event_id in ids_of(events)} == dict(ids_of(events))
    assert summary["repeated"] == 4
    assert asked[:4] == [None, "9", "9", "14"]


def test_a_restart_goes_on_where_the_last_run_ended_even_after_a_kill(registry):
    events = told(40)
    with serving(events, drop_after(15), stall_after(10)) as server, running(*LIVE, settings=registry, WIKIMEDIA_URL=server.url) as process:
        eventually(lambda: set(ids_of(events[:25])) <= set(ids_in(registry, "live")), "25 events in the topic")
        process.kill()
    with serving(events, hold) as server:
        position = registry.home / "producers" / "wikimedia-position.json"
        # The server has another port, so the position is told under its address; as of before the last events, which come again.
        position.write_bytes(orjson.dumps({"url": server.url, "last_event_id": "19"}))
        done = streamgauge(*LIVE, "--limit", "15", settings=registry, WIKIMEDIA_URL=server.url)
        assert summary_of(done)["repeated"] == 5
        assert server.requests[0]["Last-Event-ID"] == "19"
        assert json.loads(position.read_bytes()) == {"url": server.url, "last_event_id": "39"}
    found = ids_in(registry, "live")
    assert {event_id: found[event_id] for event_id in ids_of(events)} == dict(ids_of(events))


def test_the_position_is_kept_while_it_runs(registry):
    events = told(20)
    position = registry.home / "producers" / "wikimedia-position.json"
    with serving(events, hold) as server, running(*LIVE, settings=registry, WIKIMEDIA_URL=server.url) as process:
        eventually(lambda: set(ids_of(events)) <= set(ids_in(registry, "live")), "20 events in the topic")
        out, _ = stopped(process)
        assert json.loads(out)["undelivered"] == 0
        assert json.loads(position.read_bytes()) == {"url": server.url, "last_event_id": "19"}


def test_a_second_live_producer_is_refused(registry):
    with serving(told(1), hold) as server, running(*LIVE, settings=registry, WIKIMEDIA_URL=server.url):
        eventually(lambda: server.requests, "the first to connect")
        done = streamgauge(*LIVE, settings=registry, WIKIMEDIA_URL=server.url)
    assert done.returncode == 2
    assert "another producer of live changes is already running" in done.stderr


def test_a_stream_that_cannot_be_reached_is_simulated_and_the_other_way_round(registry):
    arguments = ("produce", "wikimedia", "--json", "--live-or-simulated", "--limit", "5")
    events = told(5)
    with serving(events, hold) as server:
        done = streamgauge(*arguments, settings=registry, WIKIMEDIA_URL=server.url)
        assert summary_of(done)["distinct_events"] == 5
        assert f"live changes from {server.url}" in done.stderr
    done = streamgauge(*arguments, settings=registry, WIKIMEDIA_URL=server.url)
    assert summary_of(done)["distinct_events"] == 5
    assert "simulated changes" in done.stderr


def test_a_registry_that_is_away_is_waited_for_at_the_start_and_not_missed_later(without_registry):
    own = EmbeddedRegistry(without_registry)
    with running("produce", "wikimedia", "--json", "--rate", "100", settings=without_registry) as process:
        first = process.stderr.readline()
        assert first.startswith("no schema registry answers at")
        assert "waiting for it" in first
        start_server(own)
        try:
            eventually(lambda: len(read_topic(without_registry, "wikimedia")) > 50, "records")
        finally:
            own.stop()
        before = len(read_topic(without_registry, "wikimedia"))
        eventually(lambda: len(read_topic(without_registry, "wikimedia")) > before + 100, "records without a registry")
        out, err = stopped(process)
    assert json.loads(out)["undelivered"] == 0
    assert err == ""


def test_options_that_contradict_each_other_are_one_sentence(registry, tmp_path):
    for arguments, message in (
        (("--live", "--file", __file__), "--live and --file cannot be used together"),
        (("--live", "--rate", "5"), "--rate applies to simulated events only"),
        (("--file", str(tmp_path / "none")), "does not exist"),
        (("--schema", str(tmp_path / "none")), "does not exist"),
    ):
        done = streamgauge("produce", "wikimedia", *arguments, settings=registry)
        assert done.returncode == 2, arguments
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
