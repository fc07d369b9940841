"""All domains on a Standalone cluster: each result is right, although master and a worker are killed with -9 in the middle of it.

The tests share the cluster; the last one kills the master and a worker.
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from plain import one_camera, write_topic
from running import PROCESS_SECONDS, SHORT_LIVED, environment, eventually, few_rows, streamgauge, streamgauge_process

from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import CheckpointName
from infrastructure.java.jars import fetch
from infrastructure.java.runtime import java_home
from streamgauge.platform.spark_daemons import SPARK_HOME

EVENTS = 900
BATCHES = {"STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER": "300"}
NO_PYTHON = {"PYSPARK_PYTHON": "/no/python/on/workers"}

QUERIES = ("nest-camera-stats", "nest-camera-status", "taxi-borough-stats", "wikimedia-edit-stats", "nest-archive")
START = datetime(2026, 1, 1, tzinfo=UTC)
SUBMITTED = Path(__file__).parents[2] / "deploy" / "streamgauge_submit.py"
DOMAINS = ("nest", "taxi", "wikimedia")


def produce(settings, seed):
    """Sends so many events of each domain, with faults; the three at once."""
    faults = ["--late", "0.05", "--duplicates", "0.02", "--corrupt", "0.01"]
    rest = ["--unpaced", "--limit", str(EVENTS), "--seed", str(seed), *faults]
    running = [
        subprocess.Popen([sys.executable, "-m", "streamgauge.cli", "produce", domain, *rest], env=environment(settings), stderr=subprocess.PIPE, text=True)
        for domain in DOMAINS
    ]  # fmt: skip
    for process in running:
        said = process.communicate()[1]
        assert process.returncode == 0, said


def applications(cluster):
    """The ids of Streamgauge's applications that have ended."""
    return {app["id"] for app in cluster.state()["completedapps"] if app["name"] == "streamgauge"}


def verified(settings):
    """What `streamgauge verify` finds of what has run, in this process; fails unless all is right."""
    done = streamgauge("verify", "--format", "json", settings=settings)
    found = {one["query"]: one for one in json.loads(done.stdout)}
    assert {name: one["verdict"] for name, one in found.items()} == dict.fromkeys(found, "right"), done.stdout
    return found


@pytest.mark.delta
@pytest.mark.long
def test_with_tables_and_checkpoints_in_an_object_store_no_folder_is_shared(store, cluster):
    settings = replace(
        cluster.settings,
        shared_home=False,
        lake_uri="s3a://bucket/tables",
        checkpoint_uri="s3a://bucket/checkpoints",
        aws_endpoint_url=store.address,
        aws_region="us-east-1",
    )
    write_topic(settings, "nest-logs", (one_camera(f"cam-{number % 7}", START + timedelta(minutes=number)) for number in range(200)))
    for _ in range(2):  # the second goes on where the first has ended
        done = streamgauge_process(
            "run", "nest-camera-stats", "nest-archive-delta", "--once", settings=settings, timeout=PROCESS_SECONDS, **NO_PYTHON
        )
        assert done.returncode == 0, done.stderr
    assert {path.suffix for path in settings.checkpoint_notes.iterdir()} <= {".lock", ".journal"}
    assert not (settings.home / "lake").exists()
    done = streamgauge("verify", "--format", "json", settings=settings)
    verdicts = {one["query"]: (one["verdict"], one["records"]) for one in json.loads(done.stdout)}
    assert verdicts == dict.fromkeys(("nest-camera-stats", "nest-archive-delta", "nest-dead-letters"), ("right", 200)), done.stdout


def test_spark_submit_runs_a_query_that_finds_what_spark_submit_has_chosen(cluster):
    write_topic(
        cluster.settings, "nest-logs", (one_camera(f"cam-{number % 7}", START + timedelta(minutes=number)) for number in range(200))
    )
    jars = ",".join(str(path.absolute()) for path in fetch("spark", cluster.settings))
    chosen = ["--master", cluster.settings.spark_master, "--jars", jars, "--driver-memory", "512m", "--executor-memory", "512m"]
    driver = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1", "--driver-java-options", SHORT_LIVED]
    told = replace(cluster.settings, spark_master="local[1]", executor_memory="4g")  # which is not to be had
    before = applications(cluster)
    done = subprocess.run(
        [SPARK_HOME / "bin" / "spark-submit", *chosen, *driver, SUBMITTED, "run", "nest-camera-stats", "--once"],
        env=environment(told, JAVA_HOME=str(java_home(told)), PYSPARK_DRIVER_PYTHON=sys.executable, **NO_PYTHON),
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert applications(cluster) - before, "it should have run on the cluster"
    assert verified(cluster.settings)["nest-camera-stats"]["records"] == 200


def test_every_domain_and_state_in_python_are_right_also_when_the_master_and_a_worker_are_killed(cluster):
    produce(cluster.settings, seed=1)
    log = cluster.settings.home / "run.txt"
    command = [sys.executable, "-m", "streamgauge.cli", "run", *QUERIES, "--once"]
    quick = replace(few_rows(cluster.settings), shuffle_partitions=cluster.settings.shuffle_partitions)
    # Workers run the state in Python by the interpreter of the installation, which is not on the PATH.
    surroundings = environment(quick, **BATCHES, PATH=os.defpath)
    with log.open("w") as said, subprocess.Popen(command, env=surroundings, stderr=said) as pipeline:
        checkpoint = Checkpoint(CheckpointName("nest-camera-stats", 1, "update").folder(cluster.settings))
        eventually(lambda: checkpoint.last_committed >= 0 or pipeline.poll() is not None, "a batch")
        cluster.kill_executor(1)
        eventually(lambda: "killed by signal 9" in log.read_text(), "a line on the executor that was killed")
        printed = (replace(cluster.settings, home=cluster.home).logs / "worker-1.out").read_text()
        assert "exitStatus 137" in printed, printed
        assert "CoarseGrainedExecutorBackend" not in printed, "the executor's whole command would hide the rest"
        cluster.kill_master()
        eventually(lambda: cluster.state()["aliveworkers"] == 2, "the new master to know the workers again")
        eventually(lambda: cluster.state()["activeapps"], "the new master to know the pipeline again")
        cluster.kill_worker(0)
        assert pipeline.poll() is None, (
            f"the pipeline was through before both were killed, so that this test shows nothing: {log.read_text()}"
        )
        assert pipeline.wait(PROCESS_SECONDS) == 0, log.read_text()
    assert cluster.state()["aliveworkers"] == 1
    found = verified(cluster.settings)
    assert set(QUERIES) <= set(found)
    assert all(one["records"] >= EVENTS for one in found.values()), "each domain should have been read to its end"
