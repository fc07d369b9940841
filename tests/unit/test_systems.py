"""What other systems than Linux answer, as far as it can be said on Linux."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from running import settings_on_free_ports

from streamgauge import cli
from streamgauge.operations.doctor import machine
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.listening import listener

ROOT = Path(__file__).parents[2]


def refuse(*_):
    raise psutil.AccessDenied


@pytest.fixture
def macos(monkeypatch):
    """All connections at once are for root, and those of another user's process are for that user."""
    of_one = psutil.Process.net_connections
    monkeypatch.setattr(psutil, "net_connections", refuse)
    monkeypatch.setattr(psutil.Process, "net_connections", lambda self, kind: of_one(self, kind) if self.pid == os.getpid() else refuse())


@pytest.mark.usefixtures("macos")
def test_macos_names_the_process_on_a_port_if_it_is_one_s_own():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert listener(server.getsockname()[1]) == psutil.Process()
    assert listener(1) is None


def test_the_port_of_a_server_that_runs_is_no_problem_where_the_system_does_not_say_whose_it_is(monkeypatch, tmp_path):
    settings = settings_on_free_ports(tmp_path)
    monkeypatch.setattr(EmbeddedKafka, "process", psutil.Process())
    monkeypatch.setattr(machine, "listener", lambda _: None)
    with socket.create_server(("127.0.0.1", settings.kafka_port)):
        assert machine.ports(settings)[0].level == "ok"


@pytest.mark.parametrize(("system", "loads"), [("linux", True), ("darwin", False)])
def test_macos_forks_python_before_libraries_that_do_not_survive_it_are_loaded(system, loads):
    code = f"""
import sys
import pyspark.daemon as daemon
from pipeline.spark import python_daemon

daemon.manager = lambda: print("pyarrow" in sys.modules)
sys.platform = {system!r}
python_daemon.main()
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == f"{loads}\n"


def test_windows_is_sent_to_wsl_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    error = " ".join(capsys.readouterr().err.split())
    assert error.startswith("error: Windows runs Streamgauge in WSL only")


def test_of_what_linux_alone_has_doctor_alone_uses_a_file_and_does_without():
    sources = [
        path
        for room in ("audit", "contract", "dashboard", "infrastructure", "pipeline", "producers", "streamgauge")
        for path in (ROOT / room).rglob("*.py")
    ]
    names = ("/proc/", "/sys/", "/dev/shm", "prctl", "pidfd", "memfd", "inotify", "epoll", "fadvise", "sched_")
    assert [(path.name, name) for path in sources for name in names if name in path.read_text()] == [("machine.py", "/sys/")]
