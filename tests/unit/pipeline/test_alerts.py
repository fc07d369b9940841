"""Alerts by POST, to a real HTTP server that takes them, refuses them, or is not there. Kafka is away: that must disturb nothing."""

from http.server import BaseHTTPRequestHandler
from threading import Event

import pytest
from messages import absent
from running import eventually
from web_server import Quiet, answering, webhook

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import close_producer
from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings
from infrastructure.web import outbox
from pipeline.monitoring import alerts as module
from pipeline.monitoring.alerts import Alerts


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """The webhook is tried again without a pause, and an absent Kafka is not waited for at the end."""
    monkeypatch.setattr(outbox, "PAUSES_SECONDS", (0, 0, 0))
    monkeypatch.setattr(module, "close_producer", lambda producer, _: close_producer(producer, 0))


def alerts(url):
    said = []
    (port,) = free_ports(1)
    return Alerts(Settings(kafka_port=port, alert_webhook_url=url), said.append), said


def test_an_alert_is_json_that_chat_programs_show_too():
    with webhook(200) as (url, taken):
        sender, _ = alerts(url)
        sender.send("error", "nest-archive", "given up: boom", "the whole of it")
        eventually(lambda: taken, "the alert")
    (alert,) = taken
    assert alert.pop("time").endswith("Z")
    assert alert == {
        "level": "error",
        "query": "nest-archive",
        "what": "given up: boom",
        "detail": "the whole of it",
        "text": "error: nest-archive: given up: boom",
    }


def test_a_webhook_that_is_out_of_order_for_a_moment_is_tried_again():
    with webhook(503, 500, 200) as (url, taken):
        sender, said = alerts(url)
        sender.send("warning", "first", "waits")
        sender.send("warning", "second", "waits")
        eventually(lambda: len(taken) == 4, "three tries of the first alert, and the second")
    assert [alert["query"] for alert in taken] == ["first", "first", "first", "second"]
    assert said == []


def test_closing_sends_what_still_waits():
    with webhook(200) as (url, taken):
        sender, said = alerts(url)
        for number in range(20):
            sender.send("warning", f"query {number}", "waits")
        sender.close()
    assert [alert["query"] for alert in taken] == [f"query {number}" for number in range(20)]
    assert said == []


def test_who_raises_an_alert_does_not_wait_for_the_webhook():
    may_answer = Event()
    with webhook(200, when=may_answer) as (url, taken):
        sender, _ = alerts(url)
        for _ in range(3):
            sender.send("warning", "q", "waits")
        eventually(lambda: taken, "the first alert")
        assert len(taken) == 1, "the first is not answered yet, and all were raised"
        may_answer.set()
        eventually(lambda: len(taken) == 3, "the others")


@pytest.mark.parametrize("url", ["refusing", "absent"])
def test_a_webhook_that_fails_is_told_of_without_its_secret(url):
    with webhook(404) as (refusing, _):
        sender, said = alerts(refusing if url == "refusing" else f"http://127.0.0.1:{free_ports(1)[0]}/services/T0P-SECRET")
        sender.send("warning", "q", "waits")
        (line,) = eventually(lambda: said, "a line about the webhook")
    assert "ALERT_WEBHOOK_URL" in line
    assert "127.0.0.1" in line
    assert ("404" if url == "refusing" else "Connection refused") in line
    assert "SECRET" not in line


class Moved(Quiet, BaseHTTPRequestHandler):
    """A webhook that has moved. The new address has a page, too."""

    def do_POST(self):
        self.send_response(301)
        self.send_header("Location", "/services/T0P-SECRET/new")
        self.end_headers()

    def do_GET(self):
        self.send_response(200)
        self.end_headers()


def test_a_webhook_that_has_moved_takes_no_alert_though_its_new_address_answers():
    with answering(Moved) as url:
        sender, said = alerts(url)
        sender.send("warning", "q", "waits")
        (line,) = eventually(lambda: said, "a line about the webhook")
    assert absent(line, "ALERT_WEBHOOK_URL", "HTTP 301", "correct the address") == []
    assert "SECRET" not in line


def test_an_address_that_is_none_is_refused_without_being_shown():
    with pytest.raises(StreamgaugeError, match=r"ALERT_WEBHOOK_URL.*http") as error:
        Settings.from_environment({"ALERT_WEBHOOK_URL": "hooks.example/T0P-SECRET"})
    assert "SECRET" not in str(error.value)
