"""All stories on a Standalone cluster: each result is right, also when a worker is killed with -9 in the middle of it."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from running import environment, eventually, streamgauge, streamgauge_here

from pipeline.checkpoints import Checkpoint
from streamgauge.checkpoint_names import CheckpointName

pytestmark = pytest.mark.timeout(600)
EVENTS = 4000
BATCHES = {"STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER": "500"}
NO_PYTHON = {"PYSPARK_PYTHON": "/no/python/on/workers"}
STORIES = ("nest", "taxi", "wikimedia")


def produce(settings, seed):
    """Sends so many events of each story, with faults; the three at once."""
    faults = ["--late", "0.05", "--duplicates", "0.02", "--corrupt", "0.01"]
    rest = ["--unpaced", "--limit", str(EVENTS), "--seed", str(seed), *faults]
    running = [
        subprocess.Popen([sys.executable, "-m", "streamgauge.cli", "produce", story, *rest], env=environment(settings), stderr=subprocess.PIPE, text=True)
        for story in STORIES
    ]  # fmt: skip
    for process in running:
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said


def verified(settings):
    """What `streamgauge verify` finds, in this process and without the cluster, by query; fails unless all is right."""
    done = streamgauge_here("verify", "--format", "json", settings=replace(settings, spark_master="local[2]"))
    found = {one["query"]: one for one in json.loads(done.stdout)}
    assert {name: one["verdict"] for name, one in found.items()} == dict.fromkeys(found, "right"), done.stdout
    return found


def test_every_story_is_right_and_so_it_is_when_a_worker_is_killed(cluster):
    produce(cluster.settings, seed=1)
    done = streamgauge("run", "--once", settings=cluster.settings, **NO_PYTHON)
    assert done.returncode == 0, done.stderr
    found = verified(cluster.settings)
    assert {one["records"] for one in found.values()} == {EVENTS}, "each story should have been read to its end"

    produce(cluster.settings, seed=2)
    log = (cluster.settings.home / "run.txt").open("w+")
    command = [sys.executable, "-m", "streamgauge.cli", "run", "--once"]
    with subprocess.Popen(command, env=environment(cluster.settings, **BATCHES), stderr=log) as pipeline:
        checkpoint = Checkpoint(CheckpointName("nest-camera-stats", 1, "update").folder(cluster.settings))
        before = checkpoint.last_committed
        eventually(lambda: checkpoint.last_committed >= before + 2 or pipeline.poll() is not None, "two more batches")
        cluster.kill_worker(0)
        assert pipeline.poll() is None, "the pipeline was through before the worker was killed, so that this test shows nothing"
        assert pipeline.wait(240) == 0, (cluster.settings.home / "run.txt").read_text()
    log.close()
    assert cluster.state()["aliveworkers"] == 1
    found = verified(cluster.settings)
    assert {one["records"] for one in found.values()} == {2 * EVENTS}
