"""A program that the kernel stops before each of its file operations: what the enumeration of crash points rests on."""

import os
import sys

import pytest
from crash_points.watched import End, Point, Watched, points_of, refusal, torn_of

pytestmark = pytest.mark.skipif(refusal() is not None, reason=str(refusal()))

PROGRAM = """
import subprocess, sys
from pathlib import Path
from threading import Thread

home = Path(sys.argv[1])
for line in sys.stdin:
    with (home / "table").open("a") as table:
        table.write("rows" * 2)
    Thread(target=(home / "logs" / "log").write_text, args=["..."]).start()
    for number in range(2):
        writer = Thread(target=(home / f"{number}.tmp").write_text, args=["rows"])
        writer.start()
        writer.join()
        subprocess.run(["mv", home / f"{number}.tmp", home / str(number)])
    print("done", flush=True)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "logs").mkdir()
    watched = Watched([sys.executable, "-c", PROGRAM, str(tmp_path)], dict(os.environ), tmp_path, port=9092, but=["logs"])
    yield watched
    watched.end()


def answer_of(program):
    program.popen.stdin.write("\n")
    program.popen.stdin.flush()
    return program.popen.stdout.readline()


def test_operations_of_all_threads_and_processes_are_found_in_order(program):
    assert answer_of(program) == "done\n"
    assert program.operations == ["open table", "write table", *["open N.tmp", "write N.tmp", "rename N.tmp to N"] * 2]
    assert points_of(program.operations)[4:6] == [Point("rename N.tmp to N", 1), Point("open N.tmp", 2)]


def test_it_is_killed_before_the_operation(program, tmp_path):
    point = Point("rename N.tmp to N", 2)
    program.arm(point)
    assert answer_of(program) == ""
    program.end()
    assert program.killed_at == point
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "table", "0", "1.tmp"}


def test_a_write_in_place_is_torn_in_its_middle(program, tmp_path):
    answer_of(program)
    (torn,) = torn_of(points_of(program.operations))
    program.arm(torn)
    assert answer_of(program) == ""
    program.end()
    assert torn == Point("write table", 1, End.TORN)
    assert (tmp_path / "table").read_text() == "rows" * 3


@pytest.mark.parametrize("write", ["os.write(file, whole)", "os.pwrite(file, whole, 2)", "os.writev(file, [whole[:3], b'', whole[3:]])"])
def test_a_torn_write_begins_where_the_write_would(tmp_path, write):
    (tmp_path / "table").write_bytes(b"123456")
    code = f"import os, sys; whole = b'abcd'; file = os.open(sys.argv[1], os.O_RDWR); os.lseek(file, 1, os.SEEK_SET); input(); {write}"
    watched = Watched([sys.executable, "-c", code, str(tmp_path / "table")], dict(os.environ), tmp_path, port=9092)
    watched.arm(Point("write table", 1, End.TORN))
    assert answer_of(watched) == ""
    watched.end()
    assert (tmp_path / "table").read_bytes() == (b"12ab56" if "pwrite" in write else b"1ab456")


def test_a_power_failure_takes_what_was_not_synchronized_from_files_and_leaves_their_names(tmp_path):
    (tmp_path / "appended").write_text("old ")
    code = """
import os, sys
from pathlib import Path

os.chdir(sys.argv[1])
for name in ("synchronized", "new.tmp", "appended"):
    with open(name, "a") as file:
        file.write("rows")
        file.flush()
        if name == "synchronized":
            os.fsync(file)
            file.write(" more")
os.rename("new.tmp", "new")
input()
Path("last").touch()
"""
    watched = Watched([sys.executable, "-c", code, str(tmp_path)], dict(os.environ), tmp_path, port=9092)
    watched.arm(Point("open last", 1, End.POWER))
    assert answer_of(watched) == ""
    watched.end()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"synchronized": "rows", "new": "", "appended": "old "}


def test_a_file_that_is_replaced_is_synchronized_before_it_gets_its_name(tmp_path):
    code = "import sys; from pathlib import Path; from infrastructure.storage.paths import write_whole; input(); write_whole(Path(sys.argv[1]), 'rows')"
    watched = Watched([sys.executable, "-c", code, str(tmp_path / "table")], dict(os.environ), tmp_path, port=9092)
    assert answer_of(watched) == ""
    watched.end()
    of = ".table.*.partial"
    assert watched.operations == [f"open {of}", f"write {of}", f"synchronize {of}", f"rename {of} to table"]


def test_a_point_that_it_does_not_come_to_kills_nothing(program):
    program.arm(Point("rename N.tmp to N", 3))
    assert answer_of(program) == "done\n"
    assert program.killed_at is None


def test_the_program_waits_before_each_operation(program, tmp_path):
    seen = []
    program.arm(None, before_each=lambda *_: seen.append({path.name for path in tmp_path.iterdir()} - {"logs", "table"}))
    assert answer_of(program) == "done\n"
    assert seen == [set(), set(), set(), {"0.tmp"}, {"0.tmp"}, {"0"}, {"0", "1.tmp"}, {"0", "1.tmp"}]
