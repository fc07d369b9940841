"""The checks of containers' health that need no Kafka."""

import http.server
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from running import free_ports, settings_on_free_ports

from streamgauge import health
from streamgauge.errors import StreamgaugeError


@pytest.fixture
def settings(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


@contextmanager
def a_page(status):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def statuses(monkeypatch, *found):
    known = [SimpleNamespace(query=name, host=host, state=state, is_trouble=state != "running") for name, host, state in found]
    monkeypatch.setattr("streamgauge.query_status.read_statuses", lambda _: known)


def test_a_page_that_answers(settings):
    with a_page(200) as url:
        assert health.problem([url], settings) is None


def test_a_page_that_does_not(settings):
    with a_page(503) as url:
        assert "503" in health.problem([url], settings)
    (closed,) = free_ports(1)
    assert "does not answer" in health.problem([f"http://127.0.0.1:{closed}/"], settings)


def test_queries_of_this_host_count(settings, monkeypatch):
    own = socket.gethostname()
    statuses(monkeypatch, ("a", own, "running"), ("b", "a-container-of-yesterday", "silent"))
    assert health.problem(["queries"], settings) is None
    statuses(monkeypatch, ("a", own, "running"), ("b", own, "failed"))
    assert health.problem(["queries"], settings) == "b is failed"
    statuses(monkeypatch, ("b", "a-container-of-yesterday", "running"))
    assert health.problem(["queries"], settings) == "no query has started yet"


def test_what_is_no_check(settings):
    with pytest.raises(StreamgaugeError, match="no check of everything; expected queries, topic NAME or"):
        health.problem(["of", "everything"], settings)


def test_why_not_is_printed(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["health", "nonsense"])
    assert health.main() == 1
    assert capsys.readouterr().out.startswith("no check nonsense")
