"""What a shell completes. Bash itself is asked."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import environment, settings_on_free_ports

ASKED = """
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_streamgauge_completion streamgauge
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def function():
    """The function of Bash that `--install-completion` installs."""
    command = [sys.executable, "-m", "streamgauge.cli"]
    variables = {**os.environ, "_STREAMGAUGE_COMPLETE": "source_bash"}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def completed(tmp_path, function):
    settings = settings_on_free_ports(tmp_path / "home")
    (settings.checkpoints / "ingest-orders-v1-update").mkdir(parents=True)
    settings.logs.mkdir()
    (settings.logs / "kafka.log").touch()
    on_path = environment(settings, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def asked(*words):
        command = ["bash", "-c", function + ASKED, "bash", "streamgauge", *words]
        done = subprocess.run(command, env=on_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return asked


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not there")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ver"], ["verify"]),
        (["verify", "--fr"], ["--from"]),
        (["verify", "nest-camera-stats", "ingest-"], ["ingest-orders"]),
        (["report", "--format", ""], ["table", "csv", "json"]),
        (["report", "nest-camera-stats"], ["nest-camera-stats"]),
        (["records", "nest-l"], ["nest-logs"]),
        (["dead-letters", "replay", "--topic", "nyc"], ["nyc-taxi"]),
        (["logs", ""], ["kafka"]),
        (["logs", "nothing"], []),
        (["break", "wrong"], ["wrong-clock"]),
    ],
    ids=" ".join,
)
def test_bash_completes(completed, words, expected):
    assert completed(*words) == expected
