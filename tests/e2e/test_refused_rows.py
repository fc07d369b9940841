"""A result topic that no longer takes batches, while its query runs: the pipeline ends, its next start waits for the topic, and all rows come."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from plain import one_camera, read_topic, results, write_topic
from running import environment, eventually, few_rows, running_queries, succeed, verify, with_kafka

from contract.query_status import read_statuses
from streamgauge.platform.kafka import EmbeddedKafka

pytestmark = pytest.mark.long
QUERY, START = "nest-camera-stats", datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 20
UNTIL_IT_DIES = "delivery.timeout.ms=3600000"
"""On a slow machine, Kafka's client would otherwise give up splitting after two minutes, before it dies of that."""
SOON = "-Xss512k"
"""Its thread dies when the stack is full, and each split takes longer than the one before."""


def troubles(settings):
    return [status.error or "" for status in read_statuses(settings, print) if status.query == QUERY and status.is_trouble]


def test_a_pipeline_whose_kafka_client_dies_of_refused_batches_ends_and_continues_when_they_are_taken(fresh, settings, tmp_path):
    with_kafka(fresh, EmbeddedKafka(settings).process)
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START)], key=b"home")
    mortal = replace(fresh, kafka_options=UNTIL_IT_DIES, driver_java_options=f"{fresh.driver_java_options} {SOON}")
    log = tmp_path / "pipeline.txt"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "streamgauge.cli", "run", QUERY],
            env=environment(few_rows(mortal)),
            stderr=stderr,
        ) as process,
    ):
        try:
            eventually(lambda: sum(results(fresh).values()) == 1 or process.poll() is not None, "the first row")
            succeed("break", "refused-rows", settings=fresh)
            hours = [START + timedelta(hours=number) for number in range(ROWS)]
            write_topic(fresh, "nest-logs", [one_camera("cam-1", hour) for hour in hours[1:]], key=b"home")
            eventually(lambda: process.poll() is not None, "the pipeline to end")
        finally:
            process.kill()
    assert process.returncode == 2, log.read_text()
    last = log.read_text().splitlines()[-1]
    assert last.startswith("error: the thread of Kafka's client in Spark's JVM has died"), log.read_text()
    told = [json.loads(message.value()) for message in read_topic(fresh, "alerts")]
    assert [alert["query"] for alert in told if alert["level"] == "error"] == ["pipeline"]
    with running_queries(QUERY, settings=fresh) as said:
        eventually(
            lambda: any("takes batches of at most 100 bytes" in error for error in troubles(fresh)), "the status to say why it waits"
        )
        assert any(f"{QUERY} waits for its result topic" in line for line in said), said
        succeed("break", "--undo", settings=fresh)
        eventually(lambda: sum(results(fresh).values()) == ROWS, "all rows")
    assert verify(QUERY, settings=fresh)[QUERY]["rows"]["equal"] == ROWS
