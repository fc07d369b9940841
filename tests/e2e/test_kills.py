"""kill -9 of the pipeline in the middle of its work: started again, it gives the same result."""

import json
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import psutil
import pytest
from plain import START, counts_of, folded, one_camera, results, sightings_of, write_topic
from running import environment, eventually, one_line_error, streamgauge

from pipeline.catalog import known
from pipeline.checkpoint.contents import Checkpoint


def named_below(process, name):
    return next((child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == name), None)


RUN_ALL_SINKS = """
import sys
from dataclasses import replace
from pipeline.catalog import chosen
from pipeline.ingest.queries import queries_of
from pipeline.running.runner import Runner
from pipeline.spark.session import running_session
from contract.settings import Settings

settings = Settings.from_environment()
names = sys.argv[1:]
queries = [*(query for query in chosen(names, settings) if query.name in names), queries_of("nest-logs")[0]]
with running_session(settings) as spark:
    Runner(spark, settings).run([replace(query, trigger_seconds=0) for query in queries])
"""
"""Every kind of sink at once, each batch right after the one before it, so that all of them can be killed in the middle of a batch."""


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
    documents = [one_camera(f"cam-{number // 1200 % 2}-{number % 40}", START + timedelta(seconds=number)) for number in range(24_300)]
    write_topic(
        fresh_registry, "nest-logs", documents[:10], partitions=3, key=b"home", clock=lambda number: START + timedelta(seconds=number)
    )
    assert streamgauge("ingest", "nest-logs", "--once", settings=fresh_registry).returncode == 0
    rest = [*documents[10:], *[b"rubbish"] * 50]
    write_topic(fresh_registry, "nest-logs", rest, partitions=3, key=b"home", clock=lambda number: START + timedelta(seconds=number + 10))
    produced = streamgauge("produce", "wikimedia", "--unpaced", "--limit", "12000", settings=fresh_registry)
    assert produced.returncode == 0, produced.stderr
    queries = [query for query in known(fresh_registry) if query.name in names]
    checkpoints = {query.name: Checkpoint(query.checkpoint_name.folder(fresh_registry)) for query in queries}

    def are_all_in_a_batch():
        return all(0 <= checkpoint.last_committed < checkpoint.planned[-1] for checkpoint in checkpoints.values())

    def frozen_in_a_batch():
        """Leaves the JVM frozen once every query has planned a batch that it has not committed."""
        assert pipeline.poll() is None, "the pipeline ended before it could be killed"
        driver = named_below(pipeline, "java")
        if driver is None or not are_all_in_a_batch():
            return None
        driver.suspend()
        if are_all_in_a_batch():
            return driver
        driver.resume()
        return None

    command = [sys.executable, "-c", RUN_ALL_SINKS, *names[:-1]]
    with subprocess.Popen(command, env=environment(fresh_registry, STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER="90")) as pipeline:
        eventually(frozen_in_a_batch, "every query to be in the middle of a batch").kill()
        pipeline.kill()
    interrupted = {name: checkpoint.planned[-1] for name, checkpoint in checkpoints.items()}

    for command in (("run", *names[:-1]), ("ingest", "nest-logs")):
        done = streamgauge(*command, "--once", settings=fresh_registry)
        assert done.returncode == 0, done.stderr
    assert all(checkpoint.last_committed >= interrupted[name] for name, checkpoint in checkpoints.items())
    verified = json.loads(streamgauge("verify", *names, "--format", "json", settings=fresh_registry).stdout)
    assert {one["query"]: one["verdict"] for one in verified} == dict.fromkeys(names, "right"), verified
    assert results(fresh_registry) == counts_of(set().union(*map(sightings_of, documents)))
    # Of twenty changes from one forty to the other, the watermark has passed the silence of nineteen, and has not passed the last return.
    alerts = folded(fresh_registry, "nest-camera-alerts").values()
    assert Counter(alert["alert"] for alert in alerts) == {"back": 18 * 40, "offline": 40}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_while_spark_starts(fresh, number):
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.PIPE, text=True) as pipeline:
        driver = eventually(lambda: named_below(pipeline, "java"), "a JVM to start")
        pipeline.send_signal(number)
        said = pipeline.communicate(timeout=60)[1]
    assert pipeline.returncode == 0, said
    assert "Traceback" not in said
    eventually(lambda: not driver.is_running(), "Spark's JVM to end too")


def test_its_jvm_killed_while_spark_starts(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.PIPE, text=True) as pipeline:
        eventually(lambda: named_below(pipeline, "java"), "a JVM to start").kill()
        said = pipeline.communicate(timeout=60)[1]
    assert pipeline.returncode == 2, said
    assert said.splitlines()[-1].startswith("error: Spark's JVM ended while it started (killed, or without the memory"), said
    assert "Traceback" not in said


def test_while_queries_run_a_second_pipeline_is_refused_and_the_kill_of_the_jvm_is_one_line(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.PIPE, text=True) as pipeline:
        said = [pipeline.stderr.readline() for _ in range(2)]
        assert [line.split()[0] for line in said] == ["nest-dead-letters", "nest-archive"], "both queries run"
        assert "is already running in another process" in one_line_error(streamgauge("run", "nest-archive", settings=fresh))
        assert pipeline.poll() is None
        named_below(pipeline, "java").kill()
        last = pipeline.communicate(timeout=60)[1].splitlines()
    assert pipeline.returncode == 2, last
    assert len(last) == 1, last
    assert last[0].startswith("error: Spark's JVM has ended"), last
