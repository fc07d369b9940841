"""Queries in Spark's real-time mode, run by the environment `realtime/`, whose Spark is newer than that of these tests."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from plain import results
from running import below, environment, eventually

from pipeline.checkpoint.contents import Checkpoint

PROGRAM = str(Path(__file__).parents[2] / "realtime" / ".venv" / "bin" / "streamgauge")
QUERY = "nest-camera-stats"
DOCUMENTS = 6000


@pytest.fixture
def real_time(fresh):
    return replace(fresh, real_time="5 seconds")


def run_by_realtime(*arguments, settings):
    done = subprocess.run([PROGRAM, *arguments], env=environment(settings), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def verified(settings):
    (outcome,) = json.loads(run_by_realtime("verify", QUERY, "--format", "json", settings=settings))
    return outcome


def frozen_ahead(pipeline, checkpoint, settings):
    """Spark's JVM, frozen when there are rows after its last checkpoint."""
    (driver,) = below(pipeline.pid, "java")
    committed = checkpoint.last_committed
    counted = sum(results(settings).values())
    eventually(lambda: sum(results(settings).values()) > counted, "more rows")
    driver.suspend()
    if checkpoint.last_committed == committed:
        return driver
    driver.resume()
    return None


def test_killed_in_the_middle_of_a_batch_the_result_is_ahead_of_the_checkpoint_and_exact_after_the_next_run(real_time):
    checkpoint = Checkpoint(Path(real_time.checkpoints) / f"{QUERY}-v1-real-time")
    produce = [sys.executable, "-m", "streamgauge.cli", "produce", "nest", "--rate", "200", "--limit", str(DOCUMENTS), "--speed-up", "60"]
    with subprocess.Popen([PROGRAM, "run", QUERY], env=environment(real_time)) as pipeline:
        try:
            eventually(lambda: checkpoint.last_committed >= 0, "the first checkpoint")
            with subprocess.Popen(produce, env=environment(real_time)) as producer:
                eventually(lambda: results(real_time), "the first row")
                eventually(lambda: frozen_ahead(pipeline, checkpoint, real_time), "rows after a checkpoint").kill()
                assert producer.wait() == 0
        finally:
            pipeline.kill()
    killed = verified(real_time)
    assert (killed["verdict"], killed["records"] < DOCUMENTS) == ("right", True)

    run_by_realtime("run", QUERY, "--once", settings=real_time)

    outcome = verified(real_time)
    assert (outcome["verdict"], outcome["records"], outcome["rows"]["ahead"]) == ("right", DOCUMENTS, 0)
