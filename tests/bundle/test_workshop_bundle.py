"""The archive of `make workshop-bundle`: on a machine with an empty home and no network, the commands of the trainer's guide prepare lab 1."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from streamgauge.platform.processes import PidFile, stop_process

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "build" / "streamgauge-workshop.tar.gz"
NO_NETWORK = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")


@pytest.fixture
def machine(tmp_path):
    """A folder with the archive, which is also the home."""
    (tmp_path / ARCHIVE.name).symlink_to(ARCHIVE)
    yield tmp_path
    if process := PidFile(tmp_path / "streamgauge" / ".streamgauge" / "workshop" / "grader.pid").process():
        stop_process(process, 10)


def test_a_machine_without_a_network_is_ready_for_lab_1(machine):
    guide = (ROOT / "workshop" / "TRAINER.md").read_text()
    commands = re.search(r"On each machine.*?```\n(.*?)```", guide, re.DOTALL)[1]
    environment = {"HOME": str(machine), "PATH": os.environ["PATH"], **NO_NETWORK}
    done = subprocess.run(["sh", "-ec", commands], cwd=machine, env=environment, capture_output=True, text=True, check=False)
    assert "not done yet: decode `value` with the schema DOCUMENT" in done.stdout, done.stdout + done.stderr
