"""`streamgauge query` and `maintain` on an archive of the pipeline: as a user runs them, and killed."""

import json
import random
import signal
import subprocess
import sys
import time

import duckdb
import psutil
import pytest
from running import environment, eventually, streamgauge

SMALL_BATCHES = {"STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER": "120"}


def archived(settings, seed):
    produced = streamgauge(
        "produce", "nest", "--limit", "1500", "--unpaced", "--seed", str(seed), "--start", "2026-01-01T00:00:00Z", settings=settings
    )
    assert produced.returncode == 0, produced.stderr
    done = streamgauge("run", "nest-archive", "--once", settings=settings, **SMALL_BATCHES)
    assert done.returncode == 0, done.stderr


def counts(settings):
    """The rows of the archive, as Spark counts them, and as who lists the folder does."""
    asked = streamgauge("query", "select count(*) as rows, count(distinct topic, partition, offset) as records from nest_cameras",
                        "--format", "json", settings=settings)  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    (listed,) = duckdb.sql(f"select count(*) from read_parquet('{settings.lake}/nest/cameras/**/*.parquet')").fetchall()
    (row,) = json.loads(asked.stdout)
    return row["rows"], listed[0], row["records"]


def kill_at(settings, seconds):
    """Starts a maintenance and kills it, Python and JVM, that long after its JVM has come up; returns whether it was still at it."""
    command = [sys.executable, "-m", "streamgauge.cli", "maintain"]
    with subprocess.Popen(command, env=environment(settings), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as maintenance:
        process = psutil.Process(maintenance.pid)
        eventually(lambda: (settings.lake / ".compaction").exists() or maintenance.poll() is not None, "the compaction to begin")
        time.sleep(seconds)
        is_at_it = maintenance.poll() is None
        for one in [*(process.children(recursive=True) if is_at_it else []), process]:
            one.send_signal(signal.SIGKILL)
    return is_at_it


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_archive_is_the_same_after_maintenance_that_was_killed(fresh):
    archived(fresh, 1)
    before = counts(fresh)
    assert before[0] == before[1] >= before[2] > 1000
    rng = random.Random(5)
    killed = [kill_at(fresh, rng.uniform(0, 3)) for _ in range(2)]
    assert any(killed), "it was through each time before it could be killed, so that this test shows nothing"
    assert counts(fresh) == before
    done = streamgauge("maintain", settings=fresh)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("nest_cameras (parquet): current ")
    assert len(done.stdout.splitlines()) == 1
    assert counts(fresh) == before
    archived(fresh, 2)
    verified = streamgauge("verify", "nest-archive", settings=fresh)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    rows, listed, _ = counts(fresh)
    assert rows == listed > before[0]


@pytest.mark.long
def test_an_archive_is_left_alone_while_its_query_runs(fresh):
    archived(fresh, 1)
    command = [sys.executable, "-m", "streamgauge.cli", "run", "nest-archive"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.DEVNULL) as pipeline:
        try:
            eventually((fresh.checkpoints / "nest-archive-v1-append.driver").exists, "the pipeline to run")
            done = streamgauge("maintain", settings=fresh)
        finally:
            pipeline.terminate()
    assert done.returncode == 0, done.stderr
    assert "left alone: query nest-archive runs" in done.stdout


@pytest.mark.long
def test_tables_are_listed_with_their_columns_and_a_limit_is_told(fresh):
    archived(fresh, 1)
    listed = streamgauge("query", "--format", "json", settings=fresh)
    (table,) = json.loads(listed.stdout)
    assert (table["table"], table["format"], table["path"]) == ("nest_cameras", "parquet", str(fresh.lake.absolute() / "nest" / "cameras"))
    assert "offset bigint" in table["columns"]
    few = streamgauge("query", "select * from nest_cameras", "--limit", "3", "--format", "csv", settings=fresh)
    assert len(few.stdout.splitlines()) == 4
    assert "these are the first 3 rows, and there are more" in few.stderr
    wrong = streamgauge("query", "drop table nest_cameras", settings=fresh)
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-1].startswith("error: only a query can be asked")
    assert "Traceback" not in wrong.stderr
