"""kill -9 of the pipeline in the middle of its work: started again, it gives the same result."""

import json
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from kills import driver_of, kill_in_a_batch
from plain import START, counts_of, folded, one_camera, results, sightings_of, write_topic
from running import environment, eventually, few_rows, one_line_error, streamgauge, succeed, verify

from contract.checkpoints.contents import Checkpoint
from infrastructure.kafka.topic_ends import TopicEnds
from pipeline.catalog import all_queries


@pytest.mark.delta
def test_killed_in_the_middle_of_a_batch_of_every_sink_each_is_right_after_the_next_run(fresh_registry, postgres):
    fresh_registry = replace(fresh_registry, database_url=postgres.new_database())
    names = [
        "nest-camera-stats",
        "nest-camera-stats-database",
        "nest-camera-status",
        "wikimedia-edit-stats",
        "nest-dead-letters",
        "nest-archive",
        "nest-archive-delta",
        "ingest-nest-logs",
    ]
    # More than any query gets through before the last one has started: each has a batch to be killed in.
    # Every twenty minutes forty cameras fall silent, and forty others are back.
    times = [START + timedelta(seconds=10 * number) for number in range(2430)]
    documents = [one_camera(f"cam-{number // 120 % 2}-{number % 40}", time) for number, time in enumerate(times)]
    write_topic(fresh_registry, "nest-logs", documents[:10], partitions=3, key=b"home", clock=times.__getitem__)
    succeed("ingest", "nest-logs", "--once", settings=fresh_registry)
    rest = [*documents[10:], *[b"rubbish"] * 50]
    write_topic(fresh_registry, "nest-logs", rest, partitions=3, key=b"home", clock=[*times[10:], *[times[-1]] * 50].__getitem__)
    succeed("produce", "wikimedia", "--unpaced", "--limit", "1500", settings=fresh_registry)
    queries = [query for query in all_queries(fresh_registry) if query.name in names]
    checkpoints = {query.name: Checkpoint(query.checkpoint_name.folder(fresh_registry)) for query in queries}

    def are_all_in_a_batch():
        return all(0 <= checkpoint.last_committed < checkpoint.planned[-1] for checkpoint in checkpoints.values())

    # With one interval for all queries, Spark starts their batches at the same moments. Between them, the cores are free to start the next query.
    kill_in_a_batch(names, are_all_in_a_batch, fresh_registry, STREAMGAUGE_TRIGGER_SECONDS="3")
    interrupted = {name: checkpoint.planned[-1] for name, checkpoint in checkpoints.items()}

    for command in (("run", *names[:-1]), ("ingest", "nest-logs")):
        succeed(*command, "--once", settings=fresh_registry)
    assert all(checkpoint.last_committed >= interrupted[name] for name, checkpoint in checkpoints.items())
    verified = json.loads(streamgauge("verify", *names, "--format", "json", settings=fresh_registry).stdout)
    assert {one["query"]: one["verdict"] for one in verified} == dict.fromkeys(names, "right"), verified
    assert results(fresh_registry) == counts_of(set().union(*map(sightings_of, documents)))
    # Of twenty changes from one forty to the other, the watermark has passed the silence of nineteen, and has not passed the last return.
    alerts = folded(fresh_registry, "nest-camera-alerts").values()
    assert Counter(alert["alert"] for alert in alerts) == {"back": 18 * 40, "offline": 40}


@pytest.mark.long
def test_killed_twenty_times_in_a_batch_with_timers_due_no_alert_is_lost_or_doubled(fresh):
    status, seconds = "nest-camera-status", 9000
    # Each second a new camera is heard, once: ten minutes later its timer is due.
    documents = [one_camera(f"cam-{number}", START + timedelta(seconds=number)) for number in range(seconds)]
    write_topic(fresh, "nest-logs", documents, partitions=3, key=b"home", clock=lambda number: START + timedelta(seconds=number))
    (query,) = (query for query in all_queries(fresh) if query.name == status)
    checkpoint = Checkpoint(query.checkpoint_name.folder(fresh))
    alerts, ends, ends_when_begun, killed_in = "nest-camera-alerts-0", TopicEnds(fresh.kafka), {}, []

    def timers_due(number):
        silent_ms = START.timestamp() * 1000 + 600_000
        return checkpoint.batch(number).watermark_ms - max(checkpoint.batch(number - 1).watermark_ms, silent_ms)

    def is_in_a_new_batch_with_timers_due():
        planned = checkpoint.planned[-1:]
        return checkpoint.last_committed < max(planned, default=-1) > max(killed_in, default=0) and timers_due(*planned) > 0

    def has_written_alerts():
        if not is_in_a_new_batch_with_timers_due():
            return False
        ends.ask([alerts])
        return ends.ends[alerts] > ends_when_begun.setdefault(checkpoint.planned[-1], ends.ends[alerts])

    for _ in range(10):
        kill_in_a_batch([status], is_in_a_new_batch_with_timers_due, fresh, records=90, within_seconds=6)
        killed_in.append(checkpoint.planned[-1])
        kill_in_a_batch([status], has_written_alerts, fresh, records=90)
        killed_in.append(checkpoint.planned[-1])
    succeed("run", status, "--once", settings=fresh)
    verified = verify(status, settings=fresh)[status]
    assert verified["verdict"] == "right", verified
    # The watermark is ten minutes behind the partition that is least far, and a camera is silent after another ten.
    silent = {f"cam-{number}": "offline" for number in range(seconds - 2 - 1200)}
    by_key = folded(fresh, "nest-camera-alerts")
    assert {alert["device_id"]: alert["alert"] for alert in by_key.values()} == silent
    assert len(by_key) == len(silent)
    ends.ask([alerts])
    ends.close()
    # By the offset: Kafka may have compacted the topic since.
    assert ends.ends[alerts] > len(silent), "no kill hit a batch that had written alerts"


def test_stopped_while_spark_starts(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.PIPE, text=True) as pipeline:
        driver = eventually(lambda: driver_of(pipeline), "a JVM to start")
        pipeline.send_signal(signal.SIGTERM)
        said = pipeline.communicate()[1]
    assert pipeline.returncode == 0, said
    assert "Traceback" not in said
    eventually(lambda: not driver.is_running(), "Spark's JVM to end too")


def test_its_jvm_killed_while_spark_starts(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.PIPE, text=True) as pipeline:
        eventually(lambda: driver_of(pipeline), "a JVM to start").kill()
        said = pipeline.communicate()[1]
    assert pipeline.returncode == 2, said
    assert said.splitlines()[-1].startswith("error: Spark's JVM ended while it started (killed, or without the memory"), said
    assert "Traceback" not in said


def test_while_queries_run_a_second_pipeline_is_refused_and_the_kill_of_the_jvm_is_one_line(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(few_rows(fresh)), stderr=subprocess.PIPE, text=True) as pipeline:
        said = [pipeline.stderr.readline() for _ in range(2)]
        assert [line.split()[0] for line in said] == ["nest-dead-letters", "nest-archive"], "both queries run"
        assert "is already running in another process" in one_line_error(streamgauge("run", "nest-archive", settings=fresh))
        elsewhere = replace(fresh, home=fresh.home / "another")
        refused = one_line_error(streamgauge("run", "nest-archive", settings=elsewhere))
        assert f"query nest-archive runs in process {pipeline.pid} on " in refused
        assert "with another STREAMGAUGE_HOME" in refused
        beside = succeed("run", "nest-camera-stats", "--once", settings=fresh)
        assert [line.split()[0] for line in beside.stderr.splitlines()] == ["nest-camera-stats"], (
            "the dead letters are written by the other"
        )
        assert pipeline.poll() is None
        driver_of(pipeline).kill()
        last = pipeline.communicate()[1].splitlines()
    assert pipeline.returncode == 2, last
    assert len(last) == 1, last
    assert last[0].startswith("error: Spark's JVM has ended"), last
