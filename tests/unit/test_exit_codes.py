"""Exit codes: each means one thing, and docs/commands.md says what."""

import os
import re
import signal
import subprocess
import sys

import pytest
from documents import ROOT
from running import environment, settings_on_free_ports, streamgauge

from infrastructure.errors import StreamgaugeError, Unavailable
from streamgauge import cli

DOCUMENTED = set(re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE))


def test_the_page_lists_them():
    assert {str(code) for code in (0, 1, StreamgaugeError.exit_code, Unavailable.exit_code, cli.FAULT)} == DOCUMENTED


@pytest.mark.parametrize(
    ("arguments", "variables", "code"),
    [
        (("--version",), {}, 0),
        (("doctor",), {"STREAMGAUGE_JAVA_HOME": "/no/such/java"}, 1),
        (("status", "--nonsense"), {}, 2),
        (("report", "nonsense"), {}, 2),
        (("status",), {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, 3),
        (("status",), {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "STREAMGAUGE_RESTART_LIMIT": "many"}, 2),
    ],
)
def test_a_command_ends_with(tmp_path, arguments, variables, code):
    done = streamgauge(*arguments, settings=settings_on_free_ports(tmp_path), **variables)
    assert done.returncode == code, done.stdout + done.stderr


def test_what_nothing_expects_is_a_fault_with_its_traceback(tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "prepare_proxies", lambda: 1 // 0)
    done = streamgauge("packages", settings=settings_on_free_ports(tmp_path))
    assert done.returncode == 70
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ZeroDivisionError was not expected")


def test_nobody_reads_the_output_any_more(tmp_path):
    command = [sys.executable, "-m", "streamgauge.cli", "packages"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        command, env=environment(settings_on_free_ports(tmp_path)), stdout=write_end, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
