"""A Standalone cluster whose executors come to a Kafka that asks who is there."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from brokers import running_secured
from clusters import running_cluster
from plain import one_camera, write_topic
from rights import documented
from running import streamgauge

pytestmark = pytest.mark.long
START = datetime(2026, 1, 1, tzinfo=UTC)
SLOW_SECONDS = 400


def test_executors_come_in_and_no_secret_is_left_with_them(tmp_path):
    with running_secured(tmp_path / "secured") as secured:
        write_topic(
            secured.admin, "nest-logs", (one_camera(f"cam-{number % 7}", START + timedelta(minutes=number)) for number in range(200))
        )
        for program in ("run", "verify"):
            secured.grant(program, documented()[program])
        with running_cluster(secured.come("SCRAM", secured.user("run"), tmp_path / "home")) as cluster:
            done = streamgauge("run", "nest-camera-stats", "--once", settings=cluster.settings, timeout=SLOW_SECONDS)
            assert done.returncode == 0, done.stderr
            assert any(app["name"] == "streamgauge" for app in cluster.state()["completedapps"]), "it should have run on the cluster"
            workers = [process for worker in cluster.workers for process in psutil.Process(worker.pid).children(recursive=True)]
            assert [line for process in workers for line in process.cmdline() if holds_secret(line.encode(), secured)] == []
        alone = replace(secured.come("SCRAM", secured.user("verify"), tmp_path / "home"), spark_master="local[2]")
        verified = streamgauge("verify", "nest-camera-stats", "--format", "json", settings=alone, timeout=SLOW_SECONDS)
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert [(one["verdict"], one["records"]) for one in json.loads(verified.stdout)] == [("right", 200)]
        files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
        assert any("executor" in str(path) or "spark-worker" in str(path) for path in files), "the workers should have left logs"
        assert [path for path in files if holds_secret(path.read_bytes(), secured)] == []


def holds_secret(content, secured):
    return any(secret.encode() in content for secret in secured.secrets)
