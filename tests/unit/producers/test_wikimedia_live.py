"""The live stream against a real server that misbehaves: no event is missing, none comes twice, and a person is told."""

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from sse_server import drip, drop_after, half_an_event_after, hold, refuse, repeat_from, serving, stall_after

from producers.events import Idle
from producers.wikimedia_live import LiveStream, Patience, unreachable
from streamgauge.errors import StreamgaugeError

EVENTS = [{"number": number, "text": "ü" * (number % 7)} for number in range(30)]
PATIENCE = Patience(connect=2, silence=0.4, first_wait=0.02, longest_wait=0.2)
AGENT = "a test, tests@example.org"


def read(server, count, *, last_event_id="", patience=PATIENCE, seconds=10):
    """The first `count` events that come, and the notices."""
    notices, got = [], []
    deadline = time.monotonic() + seconds
    stream = LiveStream(server.url, AGENT, last_event_id, notices.append, patience)
    messages = stream.messages(Idle(time.sleep, lambda: len(got) >= count or time.monotonic() > deadline))
    for message in messages:
        got.append(message)  # noqa: PERF402 - its length is looked at meanwhile
    return [json.loads(message.text) for message in got], notices


@pytest.mark.parametrize(
    "script",
    [
        [hold],
        [drop_after(7), drop_after(1), drop_after(0), hold],
        [stall_after(5), stall_after(3), hold],
        [half_an_event_after(4), half_an_event_after(0), hold],
        [drop_after(3), refuse(503), refuse(500), refuse(429), hold],
        [drip],
    ],
    ids=["well", "drops", "stalls", "half events", "refusals", "drips"],
)
def test_every_event_comes_once_and_in_order(script):
    with serving(EVENTS, *script) as server:
        assert read(server, len(EVENTS))[0] == EVENTS


def test_a_reconnect_names_the_last_whole_event():
    with serving(EVENTS, drop_after(5), half_an_event_after(3), hold) as server:
        read(server, len(EVENTS))
        assert [request.get("Last-Event-ID") for request in server.requests] == [None, "4", "7"]


def test_a_restart_goes_on_after_what_it_is_told():
    with serving(EVENTS, hold) as server:
        assert read(server, 10, last_event_id="19")[0] == EVENTS[20:]
        assert server.requests[0]["Last-Event-ID"] == "19"


def test_the_server_is_told_who_asks():
    with serving(EVENTS, hold) as server:
        read(server, 1)
        assert server.requests[0]["User-Agent"] == AGENT
        assert server.requests[0]["Accept"] == "text/event-stream"


def test_a_small_event_does_not_wait_for_the_next_one():
    with serving(EVENTS[:1], hold) as server:
        start = time.monotonic()
        assert read(server, 1, patience=Patience(silence=30))[0] == EVENTS[:1]
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_kept(form):
    seconds = 1 if form == "seconds" else 3
    value = "1" if form == "seconds" else format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
    with serving(EVENTS, refuse(429, Retry_After=value), hold) as server:
        start = time.monotonic()
        events, notices = read(server, len(EVENTS))
        assert time.monotonic() - start >= seconds - 1 + (form == "seconds"), "a date has whole seconds only"
    assert events == EVENTS
    assert "HTTP 429" in notices[0]
    assert "is back after" in notices[1]


def test_an_outage_is_two_lines_however_long_it_takes():
    with serving(EVENTS, *[refuse(503)] * 6, hold) as server:
        events, notices = read(server, len(EVENTS))
        assert len(server.requests) == 7
    assert events == EVENTS
    assert len(notices) == 2, notices
    assert "HTTP 503" in notices[0]


def test_a_connection_that_ends_in_good_order_is_no_news():
    with serving(EVENTS, drop_after(10), drop_after(10), hold) as server:
        assert read(server, len(EVENTS)) == (EVENTS, [])


def test_waits_grow():
    with serving(EVENTS, *[refuse(503)] * 4, hold) as server:
        start = time.monotonic()
        read(server, 1, patience=Patience(first_wait=0.1, longest_wait=10))
        assert time.monotonic() - start >= 0.75 * (0.1 + 0.2 + 0.4 + 0.8)


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refusal_for_good_is_an_error_that_names_the_address(status):
    with serving(EVENTS, refuse(status)) as server, pytest.raises(StreamgaugeError, match=f"{server.url} answers HTTP {status}"):
        read(server, 1)


def test_a_page_is_no_stream():
    def page(answer):
        answer.send_response(200)
        answer.send_header("Content-Type", "text/html")
        answer.end_headers()
        answer.write("<html></html>")

    with serving(EVENTS, page) as server, pytest.raises(StreamgaugeError, match=r"no stream of server-sent events .*text/html"):
        read(server, 1)


def test_no_server_at_all_is_waited_for():
    with serving(EVENTS, hold) as server:
        url = server.url
    notices, start = [], time.monotonic()
    stream = LiveStream(url, AGENT, "", notices.append, PATIENCE)
    assert list(stream.messages(Idle(time.sleep, lambda: time.monotonic() - start > 0.5))) == []
    assert len(notices) == 1
    assert "ConnectionError" in notices[0]


def test_a_line_that_is_no_utf_8_comes_as_it_is_and_the_next_event_whole():
    def broken(answer):
        answer.open()
        answer.write(b'id: 0\ndata: {"text": "\xff"}\n\n')
        answer.events(1, 5)
        answer.server.closing.wait(60)

    with serving(EVENTS, broken) as server:
        stream = LiveStream(server.url, AGENT, "", print, PATIENCE)
        messages = stream.messages(Idle(time.sleep, lambda: False))
        assert next(messages).text == b'{"text": "\xff"}'
        assert json.loads(next(messages).text) == EVENTS[1]
        messages.close()


def test_what_a_server_repeats_comes_again_for_the_reader_to_know_by_its_id():
    with serving(EVENTS, drop_after(10), repeat_from(3, 8), hold) as server:
        events, _ = read(server, len(EVENTS) + 3)
    assert sorted(event["number"] for event in events) == sorted([*range(30), 7, 8, 9])


def test_whether_it_comes_within_seconds():
    with serving(EVENTS, hold, refuse(503), stall_after(0), drop_after(0)) as server:
        assert [unreachable(server.url, AGENT, 0.3) for _ in range(4)] == [None, "HTTP 503", "no event came", "no event came"]
    assert unreachable(server.url, AGENT, 0.3) == "ConnectionError"
