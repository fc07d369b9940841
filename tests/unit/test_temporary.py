"""Temporary folders: in the home, one for each process, none left after its end or its kill."""

import subprocess
import sys

from infrastructure.storage.temporary import temporary_folder

HOLDER = """
import sys
from pathlib import Path
from infrastructure.storage.temporary import temporary_folder
folder = temporary_folder(Path(sys.argv[1]))
(folder / "file").write_text("")
print(folder, flush=True)
sys.stdin.read()
"""


def holder(home):
    """A process that has a temporary folder, with a file, until its input ends."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def folders(home):
    return {str(path) for path in (home / "tmp").iterdir() if path.is_dir()}


def test_the_folder_of_a_killed_process_is_deleted_at_the_next_start_and_those_of_others_stay(tmp_path):
    (killed, first), (ended, second), (living, third) = holder(tmp_path), holder(tmp_path), holder(tmp_path)
    assert folders(tmp_path) == {first, second, third}
    killed.kill()
    killed.wait()
    ended.communicate("")
    assert folders(tmp_path) == {first, third}, "a process that ends deletes its folder"
    own = temporary_folder(tmp_path)
    assert folders(tmp_path) == {third, str(own)}, "the folder of the killed process was left"
    living.communicate("")
