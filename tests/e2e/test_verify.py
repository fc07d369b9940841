"""`streamgauge verify` beside a pipeline that runs, is killed with -9, and runs again."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest
from plain import dropped, folded
from running import alive, below, environment, eventually, few_rows, running_queries, streamgauge

from audit.catalog import places_in
from audit.commands import verdicts_of
from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import CheckpointName
from pipeline.spark.session import session_config

STATS = "nest-camera-stats"
QUERIES = (STATS, "nest-archive", "nest-dead-letters")
PLANS_KEPT = "spark.sql.streaming.minBatchesToRetain"
FAULTS = ("--late", "0.05", "--too-late", "0.3", "--duplicates", "0.02", "--corrupt", "0.01")


@contextmanager
def started(settings, *arguments):
    """A command in a process of its own, killed in the end if it is still there."""
    log = settings.home / f"{arguments[0]}.txt"
    with log.open("a") as output:
        process = subprocess.Popen([sys.executable, "-m", "streamgauge.cli", *arguments], env=environment(settings), stderr=output)
    try:
        yield process
        assert process.poll() in {None, -signal.SIGKILL}, log.read_text()
    finally:
        process.kill()
        process.wait(30)


def until_batch(settings, number):
    checkpoint = Checkpoint(CheckpointName(STATS, 1, "update").folder(settings))
    eventually(lambda: checkpoint.last_committed >= number, f"batch {number} to be committed")
    return checkpoint.last_committed


def committed(settings):
    """The queries that have committed a batch."""
    return {place.name.query for place in places_in(settings) if Checkpoint(place.folder).last_committed >= 0}


@pytest.fixture
def right(fresh):
    """Verifies the named queries, all without a name, and fails unless each is right; returns what was found of each."""

    def verify(*names):
        found = {verdict.query: verdict for verdict in verdicts_of(names or QUERIES, fresh)}
        assert {outcome.verdict for outcome in found.values()} == {"right"}, found
        return found

    return verify


@pytest.fixture
def small_batches(fresh):
    """Settings for small batches however slow the machine is: at most 150 records, which the producer sends in a second, and a batch a second."""
    return replace(fresh, max_offsets_per_trigger=150, trigger_seconds=1)


@pytest.fixture
def few_plans(spark):
    """Has the worker's Spark keep the plans of two batches, where it would keep a hundred."""
    with session_config(spark, {PLANS_KEPT: "2"}):
        yield


@pytest.mark.usefixtures("few_plans")
def test_right_while_it_runs_after_kill_9_and_when_it_runs_again(fresh, right, small_batches):
    # A record that comes too late is 20 minutes behind. A batch spans 4, and drops what is 10 behind the batch before the last.
    paced = ("produce", "nest", "--rate", "150", "--speed-up", "240", "--cameras", "100", *FAULTS)
    with started(fresh, *paced):
        with started(few_rows(small_batches, **{PLANS_KEPT: "2"}), "run", *QUERIES) as pipeline:
            eventually(lambda: committed(fresh) == {*QUERIES}, "each query to have committed a batch")
            until_batch(fresh, 4)
            running = right()
            until_batch(fresh, running[STATS].batch + 1)
            processes = below(pipeline.pid)
            pipeline.send_signal(signal.SIGKILL)
            pipeline.wait(30)
        killed = right()
        eventually(lambda: not alive(processes), "the Spark of the killed pipeline to end: until then it writes")
        with running_queries(*QUERIES, settings=small_batches):
            until_batch(fresh, killed[STATS].batch + 4)
            eventually(lambda: dropped(fresh, STATS), "a row that comes too late")
            again = right()
    kept = Checkpoint(CheckpointName(STATS, 1, "update").folder(fresh)).planned
    assert min(kept) > 4, f"Spark was to have forgotten its first batches, and has {kept}"
    assert [found[STATS].notes for found in (running, killed, again)] == [[], [], []], "the journal should know every batch"
    assert 0 < running[STATS].records < killed[STATS].records < again[STATS].records
    assert running[STATS].lateness.late_rows <= killed[STATS].lateness.late_rows <= again[STATS].lateness.late_rows
    assert again[STATS].lateness.late_rows > 0
    counted = sum(row["count"] for row in folded(fresh, "nest-camera-stats").values())
    assert counted >= again[STATS].lateness.events - again[STATS].lateness.late_events

    assert streamgauge("run", *QUERIES, "--once", settings=fresh).returncode == 0
    done = streamgauge("verify", settings=fresh)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Right: 3 of 3 queries hold exactly what their source says." in done.stdout
    final = right(STATS)[STATS].lateness
    assert counted <= final.events - final.late_events == sum(row["count"] for row in folded(fresh, "nest-camera-stats").values())
    # What Spark told of the batch that the kill interrupted is lost with it; of all others it has told.
    assert final.late_rows >= dropped(fresh, STATS) > 0
