"""What a start learns of earlier runs of its queries: rows of topic `query-states` in, those that run elsewhere and the last kill out."""

import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import orjson
import psutil
import pytest
from auditing import Kafka
from foreign_rows import example

from infrastructure.kafka.errors import KafkaRefuses
from infrastructure.process.stop_signals import StopRequest
from infrastructure.text import utc_text
from pipeline.running import earlier_runs as earlier

STATS, ARCHIVE = "nest-camera-stats", "nest-archive"


@pytest.fixture
def kafka(tmp_path, monkeypatch):
    monkeypatch.setattr(earlier, "SILENCE_SECONDS", 2)
    return Kafka(tmp_path, ["query-states"])


@pytest.fixture
def process():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield running
        running.kill()


def report(kafka, query=STATS, state="running", host=None, pid=1, at=None):
    process = {"host": host or socket.gethostname(), "pid": pid}
    row = example("query-states") | {"query": query, "state": state, "process": process, "time": utc_text(at or datetime.now(UTC))}
    kafka.write("query-states", orjson.dumps(row), key=query)


def found(kafka, *queries, say=lambda _: None):
    runs = earlier.earlier_runs(queries or (STATS,), kafka.settings, say, StopRequest())
    return sorted(runs.elsewhere), runs.killed_at is not None


def test_a_process_on_this_host_runs_its_queries_as_long_as_it_is_alive(kafka, process):
    report(kafka, pid=process.pid)
    report(kafka, ARCHIVE, pid=process.pid)
    report(kafka, "another-query", pid=process.pid)
    assert found(kafka, STATS, ARCHIVE, "query-that-never-ran") == ([ARCHIVE, STATS], False)
    process.kill()
    process.wait()
    assert found(kafka, STATS, ARCHIVE) == ([], True)


@pytest.mark.parametrize("state", ["stopped", "failed"])
def test_what_has_said_that_it_stopped_runs_nowhere_and_was_not_killed(kafka, process, state):
    report(kafka, state=state, pid=process.pid)
    assert found(kafka) == ([], False)


def test_a_frozen_process_still_runs_its_queries(kafka, process):
    report(kafka, pid=process.pid)
    psutil.Process(process.pid).suspend()
    assert found(kafka) == ([STATS], False)


def test_a_process_id_that_was_given_to_a_newer_process_or_to_this_one_is_that_of_a_killed_process(kafka, process):
    report(kafka, pid=process.pid, at=datetime.now(UTC) - timedelta(hours=1))
    assert found(kafka) == ([], True)
    report(kafka, pid=os.getpid())
    assert found(kafka) == ([], True)


def test_a_process_on_another_host_runs_its_queries_if_it_reports_again(kafka):
    report(kafka, host="elsewhere", at=datetime.now(UTC) - timedelta(seconds=3))
    said = []
    assert found(kafka, say=said.append) == ([], True)
    assert said == ["waiting for up to 2 s: a process on elsewhere ran nest-camera-stats, and may still do so"]
    assert found(kafka, say=lambda _: report(kafka, host="elsewhere")) == ([STATS], False)


def test_a_process_on_another_host_that_has_reported_one_of_its_queries_runs_all_of_them(kafka):
    report(kafka, host="elsewhere")
    report(kafka, ARCHIVE, host="elsewhere")
    assert found(kafka, STATS, ARCHIVE, say=lambda _: report(kafka, ARCHIVE, host="elsewhere")) == ([ARCHIVE, STATS], False)


def test_each_process_on_another_host_is_waited_for(kafka):
    report(kafka, host="elsewhere", pid=1)
    report(kafka, ARCHIVE, host="elsewhere", pid=2)
    waits = iter([lambda: report(kafka, host="elsewhere", pid=1), lambda: report(kafka, ARCHIVE, host="elsewhere", pid=2)])

    class Stop(StopRequest):
        def wait(self, _seconds):
            next(waits, lambda: None)()
            return False

    runs = earlier.earlier_runs((STATS, ARCHIVE), kafka.settings, lambda _: None, Stop())
    assert sorted(runs.elsewhere) == [ARCHIVE, STATS]


def test_a_topic_that_this_client_may_not_read_is_a_warning(kafka, monkeypatch):
    def refuse(*_):
        msg = "Kafka does not allow it to read topic query-states"
        raise KafkaRefuses(msg)

    monkeypatch.setattr(earlier, "read_statuses", refuse)
    said = []
    assert found(kafka, say=said.append) == ([], False)
    assert said == ["whether another process runs these queries is not known: Kafka does not allow it to read topic query-states"]


def test_it_is_not_waited_for_a_host_that_is_silent(kafka):
    report(kafka, host="elsewhere", at=datetime.now(UTC) - timedelta(minutes=1))
    assert found(kafka, say=pytest.fail) == ([], True)
