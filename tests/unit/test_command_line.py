"""The command as a whole: its help, its version, and what it ends with."""

import tomllib

import pytest
from documents import ROOT
from running import streamgauge

from contract.settings import Settings


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
