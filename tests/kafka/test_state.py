"""`streamgauge state` beside a pipeline that runs in another process."""

import json
import signal
import subprocess
import sys
from datetime import UTC, datetime

from plain import one_camera, results, write_topic
from running import PROCESS_SECONDS, environment, eventually, streamgauge, streamgauge_process

START = datetime(2026, 1, 1, tzinfo=UTC)
STATS = "nest-camera-stats"


def cameras(first, last):
    return [one_camera(f"cam-{number}", START) for number in range(first, last)]


def state(settings, *arguments):
    done = streamgauge("state", STATS, *arguments, "--format", "json", settings=settings)
    # The rows of a batch are in the topic before the batch is finished.
    assert done.returncode == 0 or "it has not finished a batch" in done.stderr, done.stderr
    return json.loads(done.stdout or "[]")


def test_state_is_read_beside_a_query_that_runs_and_goes_on(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "run", STATS]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.PIPE, text=True) as pipeline:
        try:
            for first, last in ((0, 10), (10, 30)):
                write_topic(fresh, "nest-logs", cameras(first, last))
                eventually(lambda last=last: sum(results(fresh).values()) == last, f"{last} cameras to be counted")
                held = eventually(lambda last=last: [one for one in state(fresh) if one["rows"] == last], f"a state of {last} cameras")
                assert [(one["operator"], one["state"]) for one in held] == [(1, "dedupe")]
            (camera,) = state(fresh, "--key", "cam-17")
            assert camera["key"] == {"device_id": "cam-17", "start_time": "2026-01-01T00:00:00.000Z"}
            assert pipeline.poll() is None
        finally:
            pipeline.send_signal(signal.SIGTERM)
            pipeline.wait(PROCESS_SECONDS)
    folder = fresh.checkpoints / f"{STATS}-v1-update"
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    table = streamgauge_process("state", STATS, "--rows", "--limit", "3", settings=fresh)
    assert table.returncode == 0, table.stderr
    assert f"{STATS}-v1-update, after batch" in table.stdout
    assert "only the first 3 rows" in table.stderr
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == files, "reading must not write"
