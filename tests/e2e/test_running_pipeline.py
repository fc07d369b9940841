"""A pipeline that runs in a process of its own: what `status`, `state` and Spark's UI show of it, and what of it after it was killed.

The tests look at the same pipeline in their order; the last one kills it.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
from plain import START, one_camera, read_topic, write_topic
from running import alive, below, environment, eventually, few_rows, streamgauge, succeed
from topic_reset import empty_topics

from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings

STATS = "nest-camera-stats"
ANSWER_SECONDS = 60


@dataclass
class Pipeline:
    """said: the file to which it writes its lines."""

    settings: Settings
    process: "subprocess.Popen[bytes]"
    said: Path


@pytest.fixture(scope="module")
def pipeline(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """`streamgauge run nest-camera-stats` on 30 records, with Spark's UI."""
    empty_topics(settings.kafka)
    settings = few_rows(replace(settings, home=tmp_path_factory.mktemp("home"), spark_ui_port=free_ports(1)[0]))
    produce(settings, 0, 30)
    said = settings.home / "run.txt"
    command = [sys.executable, "-m", "streamgauge.cli", "run", STATS]
    with said.open("w") as output, subprocess.Popen(command, env=environment(settings), stderr=output) as process:
        yield Pipeline(settings, process, said)
        process.kill()


def produce(settings, first, last):
    cameras = [one_camera(f"cam-{number}", START + timedelta(seconds=number)) for number in range(first, last)]
    write_topic(settings, "nest-logs", cameras, partitions=3)


def status(settings):
    rows = json.loads(succeed("status", "--format", "json", settings=settings).stdout)
    return {row["query"]: row for row in rows}.get(STATS, {"state": None})


def state(settings, *arguments):
    done = streamgauge("state", STATS, *arguments, "--format", "json", settings=settings)
    # The rows of a batch are in the topic before the batch is finished.
    assert done.returncode == 0 or "it has not finished a batch" in done.stderr, done.stderr
    return json.loads(done.stdout or "[]")


def test_the_status_of_a_query_that_has_no_more_to_do(pipeline):
    def committed():
        assert pipeline.process.poll() is None, pipeline.said.read_text()
        return (pipeline.settings.checkpoints / f"{STATS}-v1-update" / "commits" / "1").exists()

    def idle():
        found = status(pipeline.settings)
        return found["state"] == "idle" and found["watermark"] and found

    eventually(committed, "a batch, and one after it that moves the watermark")
    found = eventually(idle, "no more to do")
    assert (found["pid"], found["lag"], found["late_rows"], found["error"]) == (pipeline.process.pid, 0, 0, None)
    assert found["state_rows"] > 0
    assert found["watermark"].startswith("2025-12-31T23:50:2"), "ten minutes before the last event of a partition"


def test_state_is_read_beside_a_query_that_goes_on(pipeline):
    for last in (30, 40):
        held = eventually(lambda last=last: [one for one in state(pipeline.settings) if one["rows"] == last], f"a state of {last} cameras")
        assert [(one["operator"], one["state"]) for one in held] == [(1, "dedupe")]
        if last == 30:
            produce(pipeline.settings, 30, 40)
    (camera,) = state(pipeline.settings, "--key", "cam-17")
    assert camera["key"] == {"device_id": "cam-17", "start_time": "2026-01-01T00:00:17.000Z"}
    assert pipeline.process.poll() is None


def test_sparks_ui_shows_the_queries_on_loopback_only_and_kills_nothing(pipeline):
    port = pipeline.settings.spark_ui_port
    address = re.search(r"Spark's UI.*?(http://\S+)", pipeline.said.read_text())[1]
    assert address == f"http://127.0.0.1:{port}/StreamingQuery/"

    def page():
        text = httpx2.get(address, timeout=ANSWER_SECONDS).text
        return text if STATS in text else ""

    assert "Streaming Query" in eventually(page, "the query to be in the table")
    (jvm,) = below(pipeline.process.pid, "java")
    listening = {of.laddr.ip for of in jvm.net_connections() if of.laddr.port == port and of.status == "LISTEN"}
    assert listening <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert "kill" not in httpx2.get(f"http://127.0.0.1:{port}/jobs/", timeout=ANSWER_SECONDS).text.lower()


def test_a_killed_query_falls_silent_its_state_can_be_read_and_a_later_run_stops(pipeline, monkeypatch):
    settings = pipeline.settings
    before = eventually(lambda: (found := status(settings))["lag"] == 0 and found, "the last batch to be told")
    processes = below(pipeline.process.pid)
    pipeline.process.kill()
    eventually(lambda: not alive(processes), "the Spark of the killed process to end: until then it writes")
    produce(settings, 40, 50)
    monkeypatch.setattr("contract.query_status.SILENT_AFTER", timedelta(seconds=1))
    silent = eventually(lambda: (found := status(settings))["state"] == "silent" and found, "the killed query to be called silent")
    assert silent["lag"] == 10, "what has come since the kill is lag"
    assert silent["input_rows_per_second"] is None

    files = {path: path.stat().st_mtime_ns for path in (settings.checkpoints / f"{STATS}-v1-update").rglob("*")}
    table = succeed("state", STATS, "--rows", "--limit", "3", settings=settings)
    assert f"{STATS}-v1-update, after batch" in table.stdout
    assert "only the first 3 rows" in table.stderr
    assert {path: path.stat().st_mtime_ns for path in files} == files, "reading must not write"

    later = succeed("run", STATS, "--once", settings=replace(settings, spark_ui_port=None)).stderr
    assert "pipeline: the previous run did not stop cleanly" in later
    stopped = status(settings)
    assert (stopped["state"], stopped["lag"], stopped["host"]) == ("stopped", 0, before["host"])
    assert stopped["pid"] != before["pid"]
    assert "STOPPED" in streamgauge("status", settings=settings).stdout

    events = [json.loads(message.value()) for message in read_topic(settings, "streaming-metrics") if message.key() == STATS.encode()]
    assert {event["process"]["pid"] for event in events} == {before["pid"], stopped["pid"]}
    assert [event["event"] for event in events if event["event"] in {"started", "terminated"}][-2:] == ["started", "terminated"]
    assert sum(event["input_rows"] for event in events if event["event"] == "progress" and event["process"]["pid"] == before["pid"]) == 40
