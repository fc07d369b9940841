"""What `streamgauge reset` deletes on a disk, and that nothing can start the query before all of it is gone."""

import subprocess
import sys
from dataclasses import replace

import pytest

from contract.settings import Settings
from pipeline.running.reset import deletions, locked_checkpoints, named

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
    for path in (places[0].folder / "offsets" / "0", places[0].beside(".topics"), table / "date=2026-01-01" / "part"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    with locked_checkpoints(query, settings):
        found = deletions(query, settings)
        assert len(found) == 2, "the checkpoint and the table"
        for deletion in found:
            assert [is_free(lock) for lock in locks] == [False, False], (
                f"another process can start the query before {deletion.what} is deleted"
            )
            deletion.do()
        assert [is_free(lock) for lock in locks] == [False, False], "another process can start the query while reset still runs"
        assert not table.exists()
    assert [is_free(lock) for lock in locks] == [True, True], "reset keeps the query from being started after it has ended"
    assert {path.suffix for path in settings.checkpoints.iterdir()} == {".lock"}
    assert deletions(query, settings) == [], "locks are no remains"
