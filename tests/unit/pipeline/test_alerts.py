"""Alerts by POST, to a real HTTP server that takes them, refuses them, or is not there. Kafka is away: that must disturb nothing."""

import json
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from running import eventually

from pipeline.alerts import Alerts
from streamgauge.errors import StreamgaugeError
from streamgauge.local.ports import free_ports
from streamgauge.settings import Settings


@contextmanager
def webhook(*answers):
    """A server that answers with `answers` in turn, then always with the last; gives its address and what it was sent."""
    taken, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/services/T0P-SECRET", taken
    finally:
        server.shutdown()
        server.server_close()


def alerts(url):
    said = []
    (port,) = free_ports(1)
    return Alerts(Settings(kafka_port=port, alert_webhook_url=url), said.append), said


def test_an_alert_is_json_that_chat_programs_show_too():
    with webhook(200) as (url, taken):
        sender, said = alerts(url)
        sender.send("error", "nest-archive", "given up: boom", "the whole of it")
        eventually(lambda: taken, "the alert")
        sender.close()
    (alert,) = taken
    assert alert.pop("time").endswith("Z")
    assert alert == {
        "level": "error",
        "query": "nest-archive",
        "what": "given up: boom",
        "detail": "the whole of it",
        "text": "error: nest-archive: given up: boom",
    }
    assert said == []


def test_a_webhook_that_is_out_of_order_for_a_moment_is_tried_again():
    with webhook(503, 500, 200) as (url, taken):
        sender, said = alerts(url)
        sender.send("warning", "q", "waits")
        sender.close()
    assert len(taken) == 3
    assert said == []


@pytest.mark.parametrize("url", ["refusing", "absent"])
def test_a_webhook_that_fails_is_told_of_without_its_secret_and_keeps_nobody_waiting(url):
    with webhook(404) as (refusing, _):
        sender, said = alerts(refusing if url == "refusing" else f"http://127.0.0.1:{free_ports(1)[0]}/services/T0P-SECRET")
        before = time.monotonic()
        for _ in range(100):
            sender.send("warning", "q", "waits")
        assert time.monotonic() - before < 1, "raising an alert waited for the webhook"
        eventually(lambda: said, "a line about the webhook")
        sender.close()
    assert "ALERT_WEBHOOK_URL at 127.0.0.1" in said[0]
    assert "SECRET" not in "".join(said)


def test_an_address_that_is_none_is_refused_without_being_shown():
    with pytest.raises(StreamgaugeError, match="ALERT_WEBHOOK_URL is something else; expected an address that begins with http") as error:
        Settings.from_environment({"ALERT_WEBHOOK_URL": "hooks.example/T0P-SECRET"})
    assert "SECRET" not in str(error.value)
    assert "SECRET" not in repr(Settings(alert_webhook_url="http://hooks.example/T0P-SECRET"))
