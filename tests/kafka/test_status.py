"""`streamgauge status` and `dead-letters` against queries that really run, are killed, fail, and against a Kafka that is away."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka.admin import AdminClient
from plain import one_camera, read_topic, write_topic
from running import environment, eventually, streamgauge

from contract.kafka.create_topics import create_topics

START = datetime(2026, 1, 1, tzinfo=UTC)
QUERY = "nest-camera-stats"


def status(settings, query=QUERY):
    done = streamgauge("status", "--format", "json", settings=settings)
    assert done.returncode == 0, done.stderr
    return {row["query"]: row for row in json.loads(done.stdout)}.get(query, {"state": None})


def produce(settings, count, first=0):
    write_topic(
        settings,
        "nest-logs",
        [one_camera(f"cam-{number}", START + timedelta(seconds=first + number)) for number in range(count)],
        partitions=3,
    )


def test_a_query_runs_is_killed_falls_silent_and_stops(fresh, monkeypatch):
    produce(fresh, 500)
    command = [sys.executable, "-m", "streamgauge.cli", "run", QUERY]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.DEVNULL) as pipeline:
        try:
            eventually(
                lambda: (status(fresh).get("watermark") and status(fresh)["state"] == "idle") or pipeline.poll() is not None,
                "a batch, one after it that moves the watermark, and no more to do",
            )
            running = status(fresh)
        finally:
            pipeline.kill()
    assert running["state"] in {"running", "idle"}
    assert running["pid"] == pipeline.pid
    assert running["state_rows"] > 0
    assert running["lag"] == 0
    assert running["watermark"].startswith("2025-12-31T23:58:"), "ten minutes before the last event of a partition"
    assert running["late_rows"] == 0
    assert running["error"] is None

    produce(fresh, 40, first=500)
    monkeypatch.setattr("contract.query_status.SILENT_AFTER", timedelta(seconds=1))
    silent = eventually(lambda: (found := status(fresh))["state"] == "silent" and found, "the killed query to be called silent")
    assert silent["lag"] == 40, "what has come since the kill is lag"
    assert silent["input_rows_per_second"] is None

    done = streamgauge("run", QUERY, "--once", settings=fresh)
    assert done.returncode == 0, done.stderr
    stopped = status(fresh)
    assert (stopped["state"], stopped["lag"], stopped["host"]) == ("stopped", 0, running["host"])
    assert stopped["pid"] != running["pid"]
    assert "STOPPED" in streamgauge("status", settings=fresh).stdout

    events = [json.loads(message.value()) for message in read_topic(fresh, "streaming-metrics") if message.key() == QUERY.encode()]
    assert {event["process"]["pid"] for event in events} == {running["pid"], stopped["pid"]}
    assert [event["event"] for event in events if event["event"] in {"started", "terminated"}][-2:] == ["started", "terminated"]
    assert sum(event["input_rows"] for event in events if event["event"] == "progress" and event["process"]["pid"] == running["pid"]) == 500


def test_a_query_that_fails_is_failed_with_its_error(fresh):
    produce(fresh, 10)
    assert streamgauge("run", QUERY, "--once", settings=fresh).returncode == 0
    admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
    admin.delete_topics(["nest-logs"])["nest-logs"].result(30)
    eventually(lambda: "nest-logs" not in admin.list_topics(timeout=10).topics, "the topic to be gone")
    create_topics(fresh.kafka)
    assert streamgauge("run", QUERY, "--once", settings=fresh).returncode == 2
    failed = status(fresh)
    assert failed["state"] == "failed"
    assert "topic nest-logs was deleted and recreated" in failed["error"]
    assert len(failed["error"].splitlines()) == 1
    assert "\tat " not in failed["error_detail"]
    table = streamgauge("status", settings=fresh).stdout
    assert "FAILED" in table
    assert f"{QUERY}, last error" in table


def test_before_the_first_query_the_table_says_what_to_do(fresh):
    done = streamgauge("status", settings=fresh)
    assert (done.returncode, done.stderr) == (0, "")
    assert "streamgauge run" in done.stdout
    assert json.loads(streamgauge("status", "--format", "json", settings=fresh).stdout) == []


def test_watch_shows_the_table_and_ends_with_0_on_ctrl_c(fresh):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "streamgauge.cli", "status", "--watch"]
    with subprocess.Popen(
        command, env=environment(fresh, COLUMNS="120"), stdout=theirs, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as watch:
        shown = b""

        def text():
            nonlocal shown
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 65_536)
            return shown.decode(errors="replace")

        eventually(lambda: "Ctrl-C ends" in text() or watch.poll() is not None, "the table to be shown again")
        watch.send_signal(signal.SIGINT)
        assert watch.wait(10) == 0, watch.stderr.read()
        assert watch.stderr.read() == b""
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("arguments", [("status",), ("status", "--watch"), ("status", "--format", "json"), ("dead-letters",)])
def test_a_kafka_that_is_away_is_one_clear_error(settings, arguments):
    done = streamgauge(*arguments, settings=settings, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr.startswith("error: no Kafka answers at 127.0.0.1:1")
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_the_metrics_of_every_batch_are_not_read_for_the_status(fresh):
    produce(fresh, 10)
    assert streamgauge("run", QUERY, "--once", settings=fresh).returncode == 0
    admin = fresh.kafka.admin()
    admin.delete_topics(["streaming-metrics"])["streaming-metrics"].result()
    eventually(lambda: "streaming-metrics" not in admin.list_topics().topics, "the metrics to be gone")
    try:
        assert status(fresh)["state"] == "stopped"
    finally:
        create_topics(fresh.kafka)


def test_dead_letters_are_listed_newest_first_and_by_reason(fresh):
    write_topic(fresh, "nest-logs", [b"not JSON", b"\xff\xfe\x00", b""], partitions=1)
    assert streamgauge("run", "nest-dead-letters", "--once", settings=fresh).returncode == 0
    letters = json.loads(streamgauge("dead-letters", "--format", "json", settings=fresh).stdout)
    assert {(letter["reason"], letter["text"][:8], letter["offset"]) for letter in letters} == {
        ("not JSON", "not JSON", "0"), ("not UTF-8", "00000000", "1"), ("empty", "", "2"),
    }  # fmt: skip
    assert [letter["letter_offset"] for letter in letters] == sorted((letter["letter_offset"] for letter in letters), reverse=True)
    table = streamgauge("dead-letters", "--reason", "UTF", settings=fresh).stdout
    assert "not UTF-8" in table
    assert "nest-logs-0 @ 1" in table
    assert "not JSON" not in table
    (newest,) = json.loads(streamgauge("dead-letters", "--limit", "1", "--format", "json", settings=fresh).stdout)
    assert newest == letters[0]
