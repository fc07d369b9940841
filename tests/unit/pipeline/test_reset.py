"""What `streamgauge reset` deletes on a disk, and that nothing can start the query before all of it is gone."""

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import pytest

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.checkpoint.use import check_reset
from pipeline.running.reset import delete, deletions, locked_checkpoints, named
from pipeline.running.runner import Runner
from pipeline.sinks.sink import Deletion

TRY = "import sys, filelock; filelock.FileLock(sys.argv[1]).acquire(timeout=0)"


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


def is_free(lock):
    """Whether another process can take the checkpoint, as `streamgauge run` would."""
    done = subprocess.run([sys.executable, "-c", TRY, str(lock)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "filelock._error.Timeout" in done.stderr, done.stderr
    return done.returncode == 0


def test_no_other_process_can_take_the_query_before_all_is_deleted(settings):
    query = named("nest-archive", settings)
    places = [replace(query.checkpoint_name, mode=mode).place(settings) for mode in ("append", "complete")]
    locks = [place.note(".lock") for place in places]
    table = settings.lake / "nest" / "cameras"
    for path in (places[0].folder / "offsets" / "0", places[0].sidecar(".topics"), table / "date=2026-01-01" / "part"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with locked_checkpoints(query, settings):
        found = deletions(query, settings)
        assert len(found) == 2, "the checkpoint and the table"
        for deletion in found:
            assert [is_free(lock) for lock in locks] == [False, False], (
                f"another process can start the query before {deletion.description} is deleted"
            )
            deletion.do()
        assert [is_free(lock) for lock in locks] == [False, False], "another process can start the query while reset still runs"
        assert not table.exists()
    assert [is_free(lock) for lock in locks] == [True, True], "reset keeps the query from being started after it has ended"
    assert {path.suffix for path in settings.checkpoints.iterdir()} == {".lock"}
    assert deletions(query, settings) == [], "locks are no remains"


def test_a_query_that_runs_cannot_be_run_in_another_mode(settings):
    query = named("nest-camera-stats", settings)
    runner = Runner(None, settings)
    with patch.object(Runner, "_jvm_pid", 1), ExitStack() as locks:
        assert runner._try_lock(query, locks, ())
        names = [replace(query.checkpoint_name, mode=mode) for mode in ("append", "complete", "update", "real-time")]
        assert [is_free(name.place(settings).note(".lock")) for name in names] == [False] * 4


def test_the_results_are_deleted_before_the_checkpoint(settings):
    query = named("nest-archive", settings)
    for path in (query.checkpoint_name.folder(settings), settings.lake / "nest" / "cameras"):
        path.mkdir(parents=True)
    assert [deletion.description.split()[0] for deletion in deletions(query, settings)] == ["table", "checkpoint"]


def test_a_query_does_not_start_until_an_interrupted_reset_of_it_is_completed(settings):
    def interrupt():
        raise KeyboardInterrupt

    query = named("nest-camera-stats", settings)
    with pytest.raises(KeyboardInterrupt):
        delete(query, settings, [Deletion("half of the rows", interrupt)])
    with pytest.raises(StreamgaugeError, match=r"a reset of nest-camera-stats was interrupted.*`streamgauge reset nest-camera-stats`"):
        check_reset(query.name, settings)
    check_reset("nest-crowds", settings)
    delete(query, settings, [])
    check_reset(query.name, settings)
    assert list(settings.checkpoints.iterdir()) == []


@pytest.mark.parametrize("query", ["ingest-orders", "ingest-orders-debug", "ingest-orders-dead-letters"])
def test_a_query_of_an_ingest_can_be_reset_after_the_table_is_gone(settings, query):
    """After a reset of the table, its dead letters; and the rest of a reset that was interrupted after it had deleted the table."""
    with pytest.raises(StreamgaugeError, match=f"no query {query}"):
        named(query, settings)
    (settings.checkpoints / f"{query}-v1-append").mkdir(parents=True)
    (deletion,) = deletions(named(query, settings), settings)
    assert deletion.description.startswith(f"checkpoint {query}-v1-append")
    delete(named(query, settings), settings, [deletion])
    assert list(settings.checkpoints.iterdir()) == []
