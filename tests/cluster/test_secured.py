"""A Standalone cluster whose executors come to a Kafka that requires authentication."""

import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from brokers import running_secured
from clusters import running_cluster
from plain import one_camera, write_topic
from rights import documented
from running import environment, eventually, streamgauge

pytestmark = pytest.mark.long
START = datetime(2026, 1, 1, tzinfo=UTC)


def test_executors_come_in_and_no_secret_is_left_with_them(tmp_path):
    with running_secured(tmp_path / "secured") as secured:
        write_topic(
            secured.admin, "nest-logs", (one_camera(f"cam-{number % 7}", START + timedelta(minutes=number)) for number in range(200))
        )
        for program in ("run", "verify"):
            secured.grant(program, documented()[program])
        with running_cluster(secured.come("SCRAM", secured.user("run"), tmp_path / "home")) as cluster:
            log = tmp_path / "run.txt"
            command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-camera-stats", "--once"]
            with log.open("w") as said, subprocess.Popen(command, env=environment(cluster.settings), stderr=said) as pipeline:
                told = eventually(lambda: executors(cluster) or pipeline.poll() is not None, "an executor to run")
            assert pipeline.returncode == 0, log.read_text()
            assert told is not True, "no executor was seen, so that this test shows nothing"
            assert [line for line in told if holds_secret(line.encode(), secured)] == []
        alone = replace(secured.come("SCRAM", secured.user("verify"), tmp_path / "home"), spark_master="local[2]")
        verified = streamgauge("verify", "nest-camera-stats", "--format", "json", settings=alone)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert [(one["verdict"], one["records"]) for one in json.loads(verified.stdout)] == [("right", 200)]
        files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
        assert any("executor" in str(path) or "spark-worker" in str(path) for path in files), "the workers should have left logs"
        assert [path for path in files if holds_secret(path.read_bytes(), secured)] == []


def executors(cluster):
    """The command lines and environments of the executors that run now."""
    found = []
    for process in (process for worker in cluster.workers for process in psutil.Process(worker.pid).children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            line = " ".join(process.cmdline())
            if "CoarseGrainedExecutorBackend" in line:
                found += [line, str(process.environ())]
    return found


def holds_secret(content, secured):
    return any(secret.encode() in content for secret in secured.secrets)
