"""kill -9 of the pipeline in the middle of its work: started again, it gives the same result."""

import random
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import orjson
import psutil
import pytest
from plain import counts_of, folded, one_camera, read_topic, results, write_topic
from running import environment, eventually, streamgauge

START = datetime(2026, 1, 1, tzinfo=UTC)
BATCHES = {"STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER": "2000"}


def named_below(process, name):
    return next((child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == name), None)


def batches_done(settings):
    records = [orjson.loads(message.value()) for message in read_topic(settings, "streaming-metrics")]
    return [record["batch_id"] for record in records if record["event"] == "progress" and record["query"] == "nest-camera-stats"]


@pytest.mark.parametrize("victim", [pytest.param("python", marks=pytest.mark.long), "java"])
def test_killed_in_the_middle_and_started_again(fresh, victim):
    rng = random.Random(3)
    sightings = [(f"cam-{rng.randrange(300)}", START + timedelta(seconds=number)) for number in range(40_000)]
    write_topic(fresh, "nest-logs", (one_camera(*sighting) for sighting in sightings))
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-camera-stats"]
    pipeline = subprocess.Popen(command, env=environment(fresh, **BATCHES), stderr=subprocess.PIPE, text=True)
    eventually(lambda: len(batches_done(fresh)) >= 3 or pipeline.poll() is not None, "three batches of the pipeline")
    assert pipeline.poll() is None, f"the pipeline ended before it could be killed: {pipeline.stderr.read()}"
    driver = named_below(pipeline, "java")
    (psutil.Process(pipeline.pid) if victim == "python" else driver).send_signal(signal.SIGKILL)
    pipeline.wait(30)
    assert max(batches_done(fresh)) < 19, "the pipeline was through before it was killed, so that this test shows nothing"
    if victim == "java":
        assert "Traceback" not in pipeline.stderr.read()
    again = streamgauge("run", "nest-camera-stats", "--once", settings=fresh, **BATCHES)
    assert again.returncode == 0, again.stderr
    assert results(fresh) == counts_of((device, time.isoformat()) for device, time in sightings)
    # Spark fails once more behind the batch that is run again: no fault of the query, which is started again by itself.
    assert folded(fresh, "query-states")[b"nest-camera-stats"]["error"] is None


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGINT])
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


def test_a_second_pipeline_on_the_same_checkpoint_is_refused_at_once(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.PIPE, text=True) as first:
        try:
            eventually(lambda: any((fresh.checkpoints / "nest-archive-v1-append").glob("metadata")), "the first pipeline to run")
            second = streamgauge("run", "nest-archive", settings=fresh)
            assert second.returncode == 2
            assert "runs already in another process" in second.stderr
        finally:
            first.terminate()
        assert first.wait(20) == 0, "SIGTERM should end a pipeline with exit code 0"
