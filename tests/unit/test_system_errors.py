"""Errors of the operating system: each setting's path is replaced by each kind of wrong path, and a user reads one line."""

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from messages import absent
from running import environment, one_line_error, settings_on_free_ports, streamgauge

from streamgauge.system_errors import as_line

WRONG = {
    "a file": lambda folder: folder / "file",
    "below a file": lambda folder: folder / "file" / "below",
    "too long": lambda folder: folder / ("n" * 300),
    "a circle of links": lambda folder: folder / "circle" / "below",
    "where nobody may write": lambda _: Path("/proc/nope/below"),
}
VARIABLES = ["STREAMGAUGE_HOME", "STREAMGAUGE_CACHE", "STREAMGAUGE_JAVA_HOME", "KAFKA_CLIENT_PROPERTIES", "SCHEMA_REGISTRY_PROPERTIES"]


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "file").write_text("not what was expected")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    return replace(settings_on_free_ports(tmp_path / "home"), maven_url="http://127.0.0.1:9")


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("variable", VARIABLES)
def test_a_wrong_path_is_one_line_that_names_its_setting(settings, tmp_path, variable, wrong):
    own = {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9", "SCHEMA_REGISTRY_URL": "http://127.0.0.1:9"} if "PROPERTIES" in variable else {}
    line = one_line_error(streamgauge("up", settings=settings, **own, **{variable: str(wrong(tmp_path))}))
    assert variable in line or wrong(tmp_path).name in line, line


@pytest.mark.parametrize("wrong", [name for name in WRONG if name != "where nobody may write"])
def test_a_wrong_path_of_the_tables_is_one_line_before_spark_starts(settings, tmp_path, wrong):
    path = str(WRONG[wrong](tmp_path))
    line = one_line_error(streamgauge("query", "select 1", settings=settings, without_spark=True, LAKE_URI=path))
    assert absent(line, path, "LAKE_URI") == []


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EACCES, "access"),
        (errno.EROFS, "access"),
    ],
)
def test_what_cannot_be_provoked_here_is_one_line_too(tmp_path, monkeypatch, code, advice):
    monkeypatch.setenv("STREAMGAUGE_HOME", str(tmp_path))
    line = as_line(OSError(code, os.strerror(code), str(tmp_path / "logs" / "x")))
    assert absent(line, str(tmp_path), os.strerror(code), advice, "STREAMGAUGE_HOME") == []


def test_a_full_disk_that_the_system_does_not_name_is_one_line():
    assert absent(as_line(OSError(errno.ENOSPC, "No space left on device")), "free some space", "STREAMGAUGE_HOME") == []


def test_too_many_open_files_is_one_line():
    assert "ulimit -n" in as_line(OSError(errno.EMFILE, "Too many open files"))


def test_a_current_folder_that_was_deleted_is_one_line(settings, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from streamgauge.cli import main; main()"
    variables = environment(replace(settings, home=Path("home")))
    done = subprocess.run([sys.executable, "-P", "-c", script, "up"], env=variables, capture_output=True, text=True, check=False)
    assert "current folder" in one_line_error(done)


@pytest.mark.parametrize(("debug", "has_traceback"), [("", False), ("true", True)])
def test_a_switch_shows_the_traceback(settings, tmp_path, debug, has_traceback):
    done = streamgauge("up", settings=replace(settings, home=tmp_path / "file" / "home"), STREAMGAUGE_DEBUG=debug)
    assert ("Traceback" in done.stderr) == has_traceback, done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
