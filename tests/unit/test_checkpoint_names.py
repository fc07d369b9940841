"""Names of checkpoints, of queries whose names have dots too; and the process that uses one."""

import shutil
import subprocess

import psutil
import pytest

from contract.checkpoints.names import CheckpointName, checkpoints, others_of_query, remains_of
from infrastructure.settings import Settings


@pytest.mark.parametrize("query", ["nest-archive", "ingest-orders.v1", "ingest-orders.v1-dead-letters"])
def test_a_name_says_what_it_is_made_of_and_so_do_the_files_beside_it(tmp_path, query):
    name = CheckpointName(query, 2, "append")
    place = name.place(Settings(home=tmp_path))
    assert CheckpointName.of(place.folder.name) == name
    for file in (place.note(".lock"), place.sidecar(".topics")):
        assert file.name == f"{query}-v2-append{file.suffix}"
        assert CheckpointName.of(file.name) == name


def test_queries_that_begin_alike_are_told_apart(tmp_path):
    settings = Settings(home=tmp_path)
    one, other, older = (
        CheckpointName(*of).place(settings)
        for of in (("ingest-orders.v1", 1, "append"), ("ingest-orders.v2", 1, "append"), ("ingest-orders.v1", 0, "append"))
    )
    for place in (one, other, older):
        place.folder.mkdir(parents=True)
        place.note(".lock").touch()
    assert checkpoints(settings) == [older, one, other]
    assert remains_of("ingest-orders.v1", settings) == [older.folder, older.note(".lock"), one.folder, one.note(".lock")]
    assert others_of_query(one.name, settings) == [older]


def test_a_driver_that_has_gone_and_whose_pid_is_nobodys_or_anothers_uses_no_checkpoint(tmp_path):
    place = CheckpointName("nest-archive", 1, "append").place(Settings(home=tmp_path))
    holder = place.note(".driver")
    holder.parent.mkdir(parents=True)

    def driver(pid):
        place.note_driver(pid)
        return place.driver

    (tmp_path / "java").symlink_to(shutil.which("sleep"))  # which is then the name of the process
    running = subprocess.Popen([tmp_path / "java", "600"])
    try:
        assert driver(running.pid).pid == running.pid
        shutil.copytree(holder.parent, tmp_path / "copy" / "checkpoints")
        assert place.name.place(Settings(home=tmp_path / "copy")).driver is None, "its driver is that of the original"
    finally:
        running.kill()
        running.wait()
    assert [driver(leftover) for leftover in ("", psutil.Process().pid, "rubbish", 99999999)] == [None] * 4
