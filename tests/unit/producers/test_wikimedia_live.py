"""The live stream against a real server that misbehaves: no event is missing, none comes twice, and a person is told."""

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Thread
from types import SimpleNamespace

import pytest
from running import RETRY_SECONDS, eventually, free_ports
from sse_server import drip, drop_after, half_an_event_after, hold, refuse, repeat_from, serving, stall_after

from contract.topics import MAX_RECORD_BYTES
from infrastructure.errors import StreamgaugeError
from producers.delivery.events import Idle
from producers.wikimedia.live import LiveStream, Patience, retry_after_seconds, unreachable

EVENTS = [{"number": number, "text": "ü" * (number % 7)} for number in range(30)]
PATIENCE = Patience(connect=RETRY_SECONDS, silence=RETRY_SECONDS, first_wait=0.02, longest_wait=0.2)
IMPATIENCE = Patience(connect=RETRY_SECONDS, silence=0.2, first_wait=0.02, longest_wait=0.2)
"""For what is silent on purpose. A server that is only slow is then asked once more, which such a test has to allow."""
AGENT = "a test, tests@example.org"


def read(server, count, *, agent=AGENT, last_event_id="", patience=PATIENCE):
    """The first `count` events that come, and the notices."""
    notices, got = [], []
    deadline = time.monotonic() + RETRY_SECONDS
    stream = LiveStream(server.url, agent, last_event_id, notices.append, patience)
    messages = stream.messages(Idle(time.sleep, lambda: len(got) >= count or time.monotonic() > deadline))
    for message in messages:
        got.append(message)  # noqa: PERF402 - its length is looked at meanwhile
    return [json.loads(message.text) for message in got], notices


@pytest.mark.parametrize(
    "script",
    [
        [hold],
        [drop_after(7), drop_after(1), drop_after(0), hold],
        [half_an_event_after(4), half_an_event_after(0), hold],
        [drop_after(3), refuse(503), refuse(500), refuse(429), hold],
        [drip],
    ],
    ids=["well", "drops", "half events", "refusals", "drips"],
)
def test_every_event_comes_once_and_in_order(script):
    with serving(EVENTS, *script) as server:
        assert read(server, len(EVENTS))[0] == EVENTS


def test_a_connection_that_falls_silent_is_made_again():
    with serving(EVENTS, stall_after(5), stall_after(3), hold) as server:
        assert read(server, len(EVENTS), patience=IMPATIENCE)[0] == EVENTS


def test_a_reconnect_names_the_last_whole_event():
    with serving(EVENTS, drop_after(5), half_an_event_after(3), hold) as server:
        read(server, len(EVENTS))
        assert [request.get("Last-Event-ID") for request in server.requests] == [None, "4", "7"]


def test_an_id_of_any_bytes_is_sent_back_as_it_came():
    def send_one(answer):
        answer.open()
        answer.write("id: 中\ndata: {}\n\n".encode())

    with serving([], send_one) as server:
        read(server, 2)
        assert server.requests[1]["Last-Event-ID"].encode("latin-1").decode() == "中"


@pytest.mark.parametrize(("event_id", "sent_back"), [(" a b ", "a b"), ("voilà", "voilà")])
def test_an_id_with_blanks_around_it_is_sent_back_without_them(event_id, sent_back):
    def send_one(answer):
        answer.open()
        answer.write(f"id: {event_id}\ndata: {{}}\n\n")

    with serving([], send_one) as server:
        assert read(server, 2)[0] == [{}, {}]
        assert server.requests[1]["Last-Event-ID"].encode("latin-1").decode() == sent_back


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
        assert read(server, 1)[0] == EVENTS[:1]
        assert len(server.requests) == 1, "it should have come by the connection that is still open"


def test_retry_after_is_kept():
    with serving(EVENTS, refuse(429, Retry_After="1"), hold) as server:
        start = time.monotonic()
        events, notices = read(server, len(EVENTS))
        assert time.monotonic() - start >= 1
    assert events == EVENTS
    assert "HTTP 429" in notices[0]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("7", 7, 7),
        ("1000000000", 3600, 3600),
        ("-1", 0, 0),
        ("soon", 0, 0),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0, 0),
        (timedelta(minutes=30), 1, 1800),
        (timedelta(minutes=-30), 0, 0),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_no_more_than_an_hour(text, least, most):
    if isinstance(text, timedelta):
        text = format_datetime(datetime.now(UTC) + text, usegmt=True)
    assert least <= retry_after_seconds(SimpleNamespace(headers={"Retry-After": text})) <= most


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


def test_a_stream_without_ids_that_ends_in_good_order_is_no_news_either():
    def send_one(answer):
        answer.open()
        answer.write("data: {}\n\n")

    with serving([], send_one) as server:
        assert read(server, 3) == ([{}, {}, {}], [])


def test_waits_grow():
    with serving(EVENTS, *[refuse(503)] * 4, hold) as server:
        start = time.monotonic()
        read(server, 1, patience=Patience(first_wait=0.04, longest_wait=10))
        assert time.monotonic() - start >= 0.75 * (0.04 + 0.08 + 0.16 + 0.32)


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refusal_for_good_is_an_error_that_names_the_address(status):
    with serving(EVENTS, refuse(status)) as server, pytest.raises(StreamgaugeError, match=f"{server.url}.*HTTP {status}"):
        read(server, 1)


def test_a_page_is_no_stream():
    def page(answer):
        answer.send_response(200)
        answer.send_header("Content-Type", "text/html")
        answer.end_headers()
        answer.write("<html></html>")

    with serving(EVENTS, page) as server, pytest.raises(StreamgaugeError, match=r"text/html"):
        read(server, 1)


def test_an_error_that_was_not_expected_ends_it_too():
    with serving(EVENTS, hold) as server, pytest.raises(UnicodeEncodeError):
        read(server, 1, agent="Łukasz")


def test_no_server_at_all_is_waited_for():
    (port,) = free_ports(1)
    notices, got = [], []
    stream = LiveStream(f"http://127.0.0.1:{port}/v2/stream/recentchange", AGENT, "", notices.append, PATIENCE)
    messages = stream.messages(Idle(time.sleep, lambda: False))
    reader = Thread(target=lambda: got.append(next(messages)), daemon=True)
    reader.start()
    eventually(lambda: notices, "a line about the server that is away")
    with serving(EVENTS, hold, port=port):
        (first,) = eventually(lambda: got, "the first event of the server that has come")
        messages.close()
    assert json.loads(first.text) == EVENTS[0]
    away, back = notices
    assert "Connection refused" in away
    assert str(port) in back


def test_a_line_that_is_no_utf_8_comes_as_it_is_and_the_next_event_whole():
    def broken(answer):
        answer.open()
        answer.write(b'id: 0\ndata: {"text": "\xff"}\n\n')
        answer.events(1, 5)
        answer.server.closing.wait()

    with serving(EVENTS, broken) as server:
        stream = LiveStream(server.url, AGENT, "", print, PATIENCE)
        messages = stream.messages(Idle(time.sleep, lambda: False))
        assert next(messages).text == b'{"text": "\xff"}'
        assert json.loads(next(messages).text) == EVENTS[1]
        messages.close()


def test_a_line_that_is_too_long_does_not_fill_the_memory_and_the_stream_goes_on_after_it():
    def long(answer):
        answer.open()
        for _ in range(3):
            answer.write(b"data: " + b"x" * MAX_RECORD_BYTES + b"\n")
        answer.write(b"id: 4\n\n")
        answer.events(5, 3)
        answer.server.closing.wait()

    with serving(EVENTS, long) as server:
        messages = LiveStream(server.url, AGENT, "", print, PATIENCE).messages(Idle(time.sleep, lambda: False))
        first = next(messages)
        assert (first.id, MAX_RECORD_BYTES < len(first.text) < 2.1 * MAX_RECORD_BYTES) == ("4", True), "two of the three lines are enough"
        assert [json.loads(next(messages).text) for _ in range(3)] == EVENTS[5:8]
        messages.close()


def test_what_a_server_repeats_comes_again_for_the_reader_to_know_by_its_id():
    with serving(EVENTS, drop_after(10), repeat_from(3, 8), hold) as server:
        events, _ = read(server, len(EVENTS) + 3)
    assert sorted(event["number"] for event in events) == sorted([*range(30), 7, 8, 9])


def test_whether_it_comes_within_seconds():
    def only_comments(answer):
        answer.open()
        while not answer.server.closing.wait(0.01):
            answer.write(":\n\n")

    with serving(EVENTS, hold, refuse(503), drop_after(0), stall_after(0), only_comments) as server:
        assert unreachable(server.url, AGENT, RETRY_SECONDS) is None
        assert "503" in unreachable(server.url, AGENT, RETRY_SECONDS)
        ended, silent = unreachable(server.url, AGENT, RETRY_SECONDS), unreachable(server.url, AGENT, 0.2)
        assert ended == silent == unreachable(server.url, AGENT, 0.2)
        assert ended
    assert unreachable(server.url, AGENT, RETRY_SECONDS) == "Connection refused"
