"""A command that needs Delta goes on in the environment that has it, as the same process."""

import os
import subprocess
import sys

import pytest

from infrastructure import lake_environment

CONTINUED = """
import sys
from pathlib import Path
from infrastructure import lake_environment

lake_environment.PYTHON, sys.argv = Path(sys.argv[1]), ["streamgauge", *sys.argv[2:]]
print("before", flush=True)
lake_environment.continue_with_delta("ingest")
print("not reached")
"""


def test_the_same_process_goes_on_with_its_arguments_input_and_exit_code(tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$$ $@"\ncat\nexit 7\n')
    python.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", CONTINUED, str(python), "ingest", "a b"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        said, _ = process.communicate("typed")
    assert (process.returncode, said) == (7, f"before\n{process.pid} -P -m streamgauge.cli ingest a b\ntyped")


def test_without_that_environment_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(lake_environment, "PYTHON", tmp_path / "python")
    with pytest.raises(lake_environment.StreamgaugeError, match=r"^derive needs Delta, .* `make lake`, in a clone"):
        lake_environment.continue_with_delta("derive")
    assert not lake_environment.is_delta_here()


def test_it_is_where_make_lake_installs_it():
    assert os.path.relpath(lake_environment.PYTHON, lake_environment.PYTHON.parents[3]) == "lake/.venv/bin/python"
