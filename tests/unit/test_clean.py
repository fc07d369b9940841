"""`streamgauge clean`: what it deletes, keeps and refuses. A terminal is a real one, a pseudo-terminal."""

import os
import pty
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from running import environment, settings_on_free_ports, streamgauge

from streamgauge import clean
from streamgauge.errors import StreamgaugeError


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


def typed(answer, settings, *arguments):
    """Exit code and output of the command when a person types `answer` at its question."""
    terminal, side = pty.openpty()
    command = [sys.executable, "-m", "streamgauge.cli", *arguments]
    with subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=environment(settings)) as process:
        os.close(side)
        shown = ""
        deadline = time.monotonic() + 60
        while "[y/N]" not in shown:
            assert time.monotonic() < deadline, shown
            shown += os.read(terminal, 4096).decode()
        os.write(terminal, f"{answer}\n".encode())
        code = process.wait(60)
    os.close(terminal)
    return code, shown


def test_everything_goes_and_the_home_with_it(settings):
    done = streamgauge("clean", "--yes", settings=settings)
    assert done.returncode == 0, done.stderr
    assert not settings.home.exists()
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"{settings.home / 'kafka'}  the embedded broker: all topics, ")
    assert f"the downloads in {settings.cache}" not in done.stdout or settings.cache.exists()
    again = streamgauge("clean", "--yes", settings=settings)
    assert (again.returncode, again.stdout) == (0, f"nothing to delete in {settings.home}\n")


def test_tables_elsewhere_stay_and_it_says_what_follows(settings, tmp_path):
    lake = tmp_path / "tables"
    lake.mkdir()
    done = streamgauge("clean", "--yes", settings=settings, LAKE_URI=str(lake))
    assert done.returncode == 0, done.stderr
    assert lake.exists()
    assert f"the tables in {lake} stay: delete them too before queries run anew" in done.stdout


@pytest.mark.parametrize(("answer", "code", "stays"), [("y", 0, False), ("n", 1, True), ("", 1, True)])
def test_it_asks_and_no_is_the_default(settings, answer, code, stays):
    found, shown = typed(answer, settings, "clean")
    assert (found, settings.home.exists()) == (code, stays), shown


def test_without_a_terminal_it_wants_yes(settings):
    done = streamgauge("clean", settings=settings)
    assert done.returncode == 2
    assert "say --yes" in done.stderr
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
    assert f"only the link; what it leads to, {outside}, stays" in done.stdout
    assert (outside / "precious").exists()
    assert not settings.home.exists()


class TestTheCache:
    def test_one_in_the_home_is_kept_and_goes_with_all(self, settings):
        cache = settings.home / "cache"
        (cache / "maven").mkdir(parents=True)
        (cache / "maven" / "a.jar").write_bytes(b"x" * 10_000)
        done = streamgauge("clean", "--yes", settings=settings, STREAMGAUGE_CACHE=str(cache))
        assert f"the downloads in {cache} stay" in done.stdout
        assert [path.name for path in settings.home.iterdir()] == ["cache"]
        assert (cache / "maven" / "a.jar").exists()
        done = streamgauge("clean", "--yes", "--all", settings=settings, STREAMGAUGE_CACHE=str(cache))
        assert "jars and downloads" in done.stdout
        assert not settings.home.exists()

    def test_one_elsewhere_stays_in_any_case(self, settings, tmp_path):
        cache = tmp_path / "cache"
        cache.mkdir()
        (cache / "a.jar").write_text("")
        done = streamgauge("clean", "--yes", "--all", settings=settings, STREAMGAUGE_CACHE=str(cache))
        assert done.returncode == 0, done.stderr
        assert f"the downloads in {cache} stay" in done.stdout
        assert (cache / "a.jar").exists()

    def test_one_that_is_a_link_out_of_the_home_stays_in_any_case(self, settings, tmp_path):
        outside = tmp_path / "cache"
        outside.mkdir()
        (outside / "a.jar").write_text("")
        (settings.home / "cache").symlink_to(outside)
        done = streamgauge("clean", "--yes", "--all", settings=settings, STREAMGAUGE_CACHE=str(settings.home / "cache"))
        assert done.returncode == 0, done.stderr
        assert (outside / "a.jar").exists()


class TestRefusals:
    def refused(self, settings, message):
        with pytest.raises(StreamgaugeError, match=message):
            clean.check(settings)

    def test_the_root_the_own_home_and_what_is_above_the_work(self, settings, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path / "user"))
        (tmp_path / "user").mkdir()
        for home in ("/", tmp_path / "user", tmp_path):
            self.refused(replace(settings, home=type(tmp_path)(home)), "no folder to delete")
        monkeypatch.chdir(settings.home / "logs")
        self.refused(settings, "no folder to delete")
        self.refused(replace(settings, home=type(tmp_path)("..")), "no folder to delete")

    def test_a_folder_with_things_of_others(self, settings):
        (settings.home / "thesis.tex").write_text("")
        self.refused(settings, "holds what Streamgauge did not make: thesis.tex; expected nothing but kafka, registry")

    def test_a_link_to_a_folder_with_things_of_others(self, settings, tmp_path):
        (tmp_path / "project" / ".git").mkdir(parents=True)
        (tmp_path / "link").symlink_to(tmp_path / "project")
        self.refused(replace(settings, home=tmp_path / "link"), r"did not make: \.git")

    def test_a_file(self, settings, tmp_path):
        (tmp_path / "file").write_text("")
        self.refused(replace(settings, home=tmp_path / "file"), "is no folder")

    def test_while_a_program_has_a_file_of_it_open(self, settings):
        file = settings.home / "logs" / "deep" / "file"
        with a_program("import sys, time; file = open(sys.argv[1]); print('ready', flush=True); time.sleep(600)", str(file)) as program:
            self.refused(settings, rf"\(pid {program.pid}\) has {file} open; end it, then clean")
        clean.check(settings)

    def test_while_a_spark_driver_uses_a_checkpoint(self, settings):
        name = "nest-archive-v1-append"
        (settings.checkpoints / name).mkdir()
        code = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'java'); print('ready', flush=True); time.sleep(600)"
        with a_program(code) as program:
            (settings.checkpoints / f"{name}.driver").write_text(str(program.pid))
            self.refused(settings, rf"{name} is in use \(its Spark driver is pid {program.pid}\)")
        clean.check(settings)
