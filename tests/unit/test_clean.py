"""`streamgauge clean`: what it deletes, keeps and refuses. A terminal is a real one, a pseudo-terminal."""

import io
import os
import pty
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from documents import ROOT
from running import one_line_error, settings_on_free_ports, streamgauge

from contract.checkpoints.names import CheckpointName
from infrastructure.errors import StreamgaugeError
from streamgauge.operations import clean


@pytest.fixture
def settings(tmp_path):
    """Settings of a home as it is after some use."""
    chosen = settings_on_free_ports(tmp_path / "home")
    for name in clean.OURS:
        folder = chosen.home / name / "deep"
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * 10_000)
    return chosen


@contextmanager
def a_program(*arguments):
    program = subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n"
        yield program
    finally:
        program.kill()
        program.wait()


@contextmanager
def a_person_types(answer, monkeypatch):
    """Standard input is a terminal, at which a person has typed `answer`."""
    terminal, side = pty.openpty()
    os.write(terminal, f"{answer}\n".encode())
    with open(side) as stdin:  # noqa: PTH123 - a terminal is no path
        monkeypatch.setattr(sys, "stdin", stdin)
        yield
    os.close(terminal)


def test_it_knows_all_that_the_code_writes_to_the_home():
    files = (path for room in ("streamgauge", "producers", "pipeline", "audit") for path in (ROOT / room).rglob("*.py"))
    written = {name for path in files for name in re.findall(r'settings\.home(?:\.absolute\(\))? / "([^"]+)"', path.read_text())}
    assert {"kafka", "demo.lock"} <= written <= clean.OURS.keys()


def test_everything_goes_and_the_home_with_it(settings):
    done = streamgauge("clean", "--yes", settings=settings)
    assert done.returncode == 0, done.stderr
    assert not settings.home.exists()
    said = dict(line.split("  ", 1) for line in done.stdout.splitlines() if "  " in line)
    assert set(said) == {str(settings.home / name) for name in clean.OURS}, "a line for each thing that goes"
    assert said[str(settings.home / "kafka")].endswith("12 kB"), "with its size on the disk"
    again = streamgauge("clean", "--yes", settings=settings)
    assert (again.returncode, str(settings.home) in again.stdout, len(again.stdout.splitlines())) == (0, True, 1)


def test_tables_elsewhere_stay_and_it_says_so(settings, tmp_path):
    lake = tmp_path / "tables"
    lake.mkdir()
    done = streamgauge("clean", "--yes", settings=settings, LAKE_URI=str(lake))
    assert done.returncode == 0, done.stderr
    assert lake.exists()
    assert str(lake) in done.stdout


@pytest.mark.parametrize(("answer", "code", "stays"), [("y", 0, False), ("n", 2, True), ("", 2, True)])
def test_it_asks_and_no_is_the_default(settings, monkeypatch, answer, code, stays):
    with a_person_types(answer, monkeypatch):
        done = streamgauge("clean", settings=settings)
    assert (done.returncode, settings.home.exists()) == (code, stays), done.stdout + done.stderr
    assert "[y/N]" in done.stderr


def test_without_a_terminal_it_wants_yes(settings, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert "--yes" in one_line_error(streamgauge("clean", settings=settings))
    assert (settings.home / "kafka" / "deep" / "file").exists()


def test_links_go_and_what_they_lead_to_stays(settings, tmp_path):
    outside = tmp_path / "big-disk"
    outside.mkdir()
    (outside / "precious").write_text("")
    (settings.home / "lake" / "deep" / "file").unlink()
    (settings.home / "lake" / "deep").rmdir()
    (settings.home / "lake").rmdir()
    (settings.home / "lake").symlink_to(outside)
    (settings.home / "logs" / "deep" / "link").symlink_to(outside)
    done = streamgauge("clean", "--yes", settings=settings)
    assert done.returncode == 0, done.stderr
    assert str(outside) in done.stdout, "what stays is named"
    assert (outside / "precious").exists()
    assert not settings.home.exists()


@pytest.mark.parametrize("cache", ["home/cache", "cache"])
def test_downloads_stay_and_it_says_so(settings, tmp_path, cache):
    jar = tmp_path / cache / "maven" / "a.jar"
    jar.parent.mkdir(parents=True)
    jar.write_text("")
    done = streamgauge("clean", "--yes", settings=settings, STREAMGAUGE_CACHE=str(tmp_path / cache))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / cache) in done.stdout
    assert jar.exists()
    assert not (settings.home / "kafka").exists()


class TestRefusals:
    def refused(self, settings, message):
        with pytest.raises(StreamgaugeError, match=message):
            clean.check(settings)

    def test_the_root_the_own_home_and_what_is_above_the_work(self, settings, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path / "user"))
        (tmp_path / "user").mkdir()
        for home in (Path("/"), tmp_path / "user", tmp_path):
            self.refused(replace(settings, home=home), rf"^STREAMGAUGE_HOME={home} .*{tmp_path / 'user'};")
        monkeypatch.chdir(settings.home / "logs")
        self.refused(settings, rf"^STREAMGAUGE_HOME={settings.home} .*{Path.cwd()};")
        self.refused(replace(settings, home=Path("..")), rf"^STREAMGAUGE_HOME=\.\. .*{Path.cwd()};")

    def test_a_folder_with_things_of_others(self, settings):
        (settings.home / "thesis.tex").write_text("")
        self.refused(settings, r"thesis\.tex.*kafka, registry, ")

    def test_a_link_to_a_folder_with_things_of_others(self, settings, tmp_path):
        (tmp_path / "project" / ".git").mkdir(parents=True)
        (tmp_path / "link").symlink_to(tmp_path / "project")
        self.refused(replace(settings, home=tmp_path / "link"), r": \.git;")

    def test_a_file(self, settings, tmp_path):
        (tmp_path / "file").write_text("")
        self.refused(replace(settings, home=tmp_path / "file"), f"^STREAMGAUGE_HOME={tmp_path / 'file'} ")

    def test_while_a_program_has_a_file_of_it_open(self, settings):
        file = settings.home / "logs" / "deep" / "file"
        with a_program("import sys, time; file = open(sys.argv[1]); print('ready', flush=True); time.sleep(600)", str(file)) as program:
            self.refused(settings, rf"\(pid {program.pid}\) .*{file}")
        clean.check(settings)

    def test_while_a_spark_driver_uses_a_checkpoint(self, settings):
        place = CheckpointName("nest-archive", 1, "append").place(settings)
        code = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'java'); print('ready', flush=True); time.sleep(600)"
        with a_program(code) as program:
            place.note_driver(program.pid)
            self.refused(settings, rf"{place.name} .*pid {program.pid}")
        clean.check(settings)
