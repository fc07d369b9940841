"""`streamgauge status` and `dead-letters`, with and without a Kafka. For the status of queries that run, see tests/e2e/test_running_pipeline.py."""

import json
import os
import pty
import select
import signal
import subprocess
import sys

import orjson
import pytest
from plain import write_topic
from query_topics import QueryTopics
from running import environment, eventually, streamgauge, succeed

from contract.create_topics import create_topics
from infrastructure.errors import Unavailable


def test_before_the_first_query_the_table_says_what_to_do(fresh):
    done = streamgauge("status", settings=fresh)
    assert (done.returncode, done.stderr) == (0, "")
    assert "streamgauge run" in done.stdout
    assert json.loads(streamgauge("status", "--format", "json", settings=fresh).stdout) == []


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_watch_shows_the_table_and_ends_with_0_on_ctrl_c(fresh, terminal):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "streamgauge.cli", "status", "--watch"]
    with subprocess.Popen(
        command, env=environment(fresh, COLUMNS="120", TERM=terminal), stdout=theirs, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as watch:
        shown = b""

        def text():
            nonlocal shown
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 65_536)
            return shown.decode(errors="replace")

        eventually(lambda: "Ctrl-C ends" in text() or watch.poll() is not None, "the table to be shown again")
        watch.send_signal(signal.SIGINT)
        assert watch.wait() == 0, watch.stderr.read()
        assert watch.stderr.read() == b""
    os.close(ours)
    os.close(theirs)


@pytest.mark.usefixtures("soon_away")
@pytest.mark.parametrize("arguments", [("status",), ("status", "--watch"), ("status", "--format", "json"), ("dead-letters",)])
def test_a_kafka_that_is_away_is_one_clear_error(settings, arguments):
    done = streamgauge(*arguments, settings=settings, KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1")
    assert done.returncode == Unavailable.exit_code
    assert done.stderr.startswith("error: no Kafka answers at 127.0.0.1:1")
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_the_metrics_of_every_batch_are_not_read_for_the_status(fresh):
    QueryTopics(fresh.bootstrap_servers, {"states": "query-states"}).state("nest-camera-stats", state="stopped")
    admin = fresh.kafka.admin()
    admin.delete_topics(["streaming-metrics"])["streaming-metrics"].result()
    eventually(lambda: "streaming-metrics" not in admin.list_topics().topics, "the metrics to be gone")
    try:
        (found,) = json.loads(succeed("status", "--format", "json", settings=fresh).stdout)
        assert (found["query"], found["state"]) == ("nest-camera-stats", "stopped")
    finally:
        create_topics(fresh.kafka)


def test_a_topic_that_is_gone_hides_the_lag_of_no_other_query(fresh):
    states = QueryTopics(fresh.bootstrap_servers, {"states": "query-states"})
    states.state("nest-camera-stats")
    states.state("orders", source_offsets={"no-such-topic-0": 5})
    write_topic(fresh, "nest-logs", [b"{}"] * 3, partitions=1)
    lags = {row["query"]: row["lag"] for row in json.loads(succeed("status", "--format", "json", settings=fresh).stdout)}
    assert lags["nest-camera-stats"] == 3


def test_rows_of_another_program_are_left_out_with_a_warning(fresh):
    stats = orjson.loads('{"zip_code": "94107", "window": {"start": "2026-01-01T12:00:00Z", "end": "2026-01-01T13:00:00Z"}, "count": 3}')
    values = [stats, stats | {"count": "many"}, stats | {"zip_code": None}, {"window": stats["window"]}]
    for number, value in enumerate(values):
        write_topic(fresh, "nest-camera-stats", [orjson.dumps(value)], key=b"%d" % number)
    QueryTopics(fresh.bootstrap_servers, {"states": "query-states"}).state("nest-camera-stats")
    write_topic(fresh, "query-states", [b'{"query": "orders"}'], key=b"orders")
    for command, rows, left_out in ((("report", "nest-camera-stats"), 1, "3 rows"), (("status",), 1, "1 row")):
        done = streamgauge(*command, "--format", "json", settings=fresh)
        assert (done.returncode, len(json.loads(done.stdout))) == (0, rows), done.stderr
        assert done.stderr.startswith(f"warning: {left_out} of topic "), done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_dead_letters_are_listed_newest_first_and_by_reason(fresh):
    write_topic(fresh, "nest-logs", [b"not JSON", b"\xff\xfe\x00", b""], partitions=1)
    succeed("run", "nest-dead-letters", "--once", settings=fresh)
    letters = json.loads(streamgauge("dead-letters", "--format", "json", settings=fresh).stdout)
    assert {(letter["reason"], letter["text"][:8], letter["offset"]) for letter in letters} == {
        ("not JSON", "not JSON", "0"), ("not UTF-8", r"b'\xff\x", "1"), ("empty", "", "2"),
    }  # fmt: skip
    assert [letter["letter_offset"] for letter in letters] == sorted((letter["letter_offset"] for letter in letters), reverse=True)
    table = streamgauge("dead-letters", "--reason", "UTF", settings=fresh).stdout
    assert "not UTF-8" in table
    assert "nest-logs-0 @ 1" in table
    assert "not JSON" not in table
    (newest,) = json.loads(streamgauge("dead-letters", "--limit", "1", "--format", "json", settings=fresh).stdout)
    assert newest == letters[0]
