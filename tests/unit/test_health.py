"""The checks of containers' health that need no Kafka."""

import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import pytest
from running import free_ports, settings_on_free_ports
from web_server import Quiet, answering

from infrastructure.errors import StreamgaugeError
from streamgauge.operations import health


@pytest.fixture
def settings(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


def a_page(status):
    class Page(Quiet, BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()

    return answering(Page)


def statuses(monkeypatch, *found):
    known = [
        SimpleNamespace(query=name, host=host, pid=pid, state=state, has_process=state in {"running", "idle", "starting", "restarting"})
        for name, host, pid, state in found
    ]
    monkeypatch.setattr("contract.query_status.read_statuses", lambda *_: known)


def test_a_page_that_answers(settings):
    with a_page(200) as url:
        assert health.problem([url], settings) is None


def test_a_page_that_does_not(settings):
    with a_page(503) as url:
        assert "503" in health.problem([url], settings)
    closed = f"http://127.0.0.1:{free_ports(1)[0]}/"
    assert closed in health.problem([closed], settings)


def test_queries_of_this_host_count(settings, monkeypatch):
    own = socket.gethostname()
    statuses(monkeypatch, ("a", own, 7, "running"), ("b", "a-container-of-yesterday", 7, "silent"))
    assert health.problem(["queries"], settings) is None
    statuses(monkeypatch, ("a", own, 7, "idle"), ("b", own, 7, "failed"), ("c", own, 7, "restarting"))
    assert health.problem(["queries"], settings) == "b is failed, c is restarting"
    statuses(monkeypatch, ("a", own, 7, "idle"), ("b", own, 7, "starting"))
    assert health.problem(["queries"], settings) is None
    statuses(monkeypatch, ("a", own, 7, "starting"))
    assert health.problem(["queries"], settings) == "no query has started yet"
    statuses(monkeypatch, ("b", "a-container-of-yesterday", 7, "running"))
    assert health.problem(["queries"], settings), "none of this host has started yet"


def test_what_ended_processes_have_left_counts_only_when_none_runs(settings, monkeypatch):
    own = socket.gethostname()
    left = ("a", own, 5, "failed"), ("b", own, 6, "stopped"), ("c", own, 6, "silent")
    statuses(monkeypatch, *left, ("d", own, 7, "running"), ("e", own, 7, "stopped"))
    assert health.problem(["queries"], settings) is None
    statuses(monkeypatch, *left)
    assert health.problem(["queries"], settings) == "a is failed, b is stopped, c is silent"


def test_what_is_no_check_is_named_with_those_that_are(settings):
    with pytest.raises(StreamgaugeError, match=r"of everything.* queries, topic "):
        health.problem(["of", "everything"], settings)


def test_the_program_ends_with_the_reason():
    done = subprocess.run([sys.executable, "-m", "streamgauge.operations.health", "nonsense"], capture_output=True, text=True, check=False)
    assert (done.returncode, "nonsense" in done.stderr) == (1, True)
