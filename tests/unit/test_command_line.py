"""The command as a whole: its help, its version, and what it ends with."""

import os
import subprocess
import sys
import tomllib

import pytest
from documents import ROOT
from messages import absent
from running import environment, one_line_error, streamgauge

from infrastructure.settings import Settings
from streamgauge.cli import main


def test_every_command_is_in_a_group(tmp_path):
    text = streamgauge("--help", settings=Settings(home=tmp_path)).stdout
    assert "\nRun:\n  demo " in text
    assert "\nCommands:\n" not in text, "a command was added without a group"


def test_the_version_is_that_of_the_package(tmp_path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    done = streamgauge("--version", settings=Settings(home=tmp_path))
    assert (done.returncode, done.stdout) == (0, f"streamgauge {project['version']}\n")


@pytest.mark.parametrize("arguments", [("--debug", "up"), ("up",)])
def test_debug_shows_the_traceback(tmp_path, arguments):
    (tmp_path / "file").touch()
    done = streamgauge(*arguments, settings=Settings(home=tmp_path / "file" / "home"))
    assert ("Traceback" in done.stderr) == ("--debug" in arguments), done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize("other", ["contract.py", "pipeline/__init__.py"])
def test_a_package_of_another_program_under_the_same_name_is_one_line(tmp_path, other):
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / other).touch()
    run = [sys.executable, "-P", "-m", "streamgauge.cli", "--version"]
    variables = environment(Settings(home=tmp_path), PYTHONPATH=str(tmp_path))
    line = one_line_error(subprocess.run(run, env=variables, capture_output=True, text=True, check=False))
    assert absent(line, str(tmp_path / other), "PYTHONPATH") == []


def test_an_argument_that_is_not_utf_8_is_one_line(tmp_path):
    done = streamgauge("records", os.fsdecode(b"nest\xff"), settings=Settings(home=tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: argument 'nest\\udcff' is not UTF-8; correct it, or set LANG to a locale in UTF-8\n"


@pytest.mark.parametrize(("given", "found"), [("POSIX", "C.UTF-8"), ("C", "C.UTF-8"), ("de_DE.UTF-8", "de_DE.UTF-8"), ("", "")])
def test_child_processes_have_utf_8_as_python_has(monkeypatch, given, found):
    monkeypatch.setenv("LC_ALL", given)
    monkeypatch.setattr("sys.argv", ["streamgauge", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert os.environ["LC_ALL"] == found
