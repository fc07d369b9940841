"""Bytes of a stream in, events out, however the bytes are cut into reads. A second parser, of the whole text at once, says what is right."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producers.wikimedia import server_sent_events
from producers.wikimedia.server_sent_events import ServerSentEvent, lines, messages

MARK = "\ufeff"


def parsed(*chunks):
    return list(messages(lines(chunk.encode() for chunk in chunks)))


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_end_of_line_is_one(end):
    text = end.join(["id: 1", "data: a", "", "data:b", "", ": comment", "data: c", "data:  d", "", ""])
    assert parsed(text) == [ServerSentEvent("1", b"a"), ServerSentEvent("1", b"b"), ServerSentEvent("1", b"c\n d")]


def test_an_event_comes_before_the_next_read_also_if_its_line_ends_in_cr():
    stream = messages(lines(iter([b"data: a\r\r", b"\ndata: b\r\n", b"\r", b"\n"])))
    assert [next(stream), next(stream)] == [ServerSentEvent("", b"a"), ServerSentEvent("", b"b")]


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (MARK + "data: a\n\n", [ServerSentEvent("", b"a")]),
        (MARK + MARK + "data: a\n\n", []),
        ("data: a\u2028b\u0085c\x0bd\x0ce\n\n", [ServerSentEvent("", "a\u2028b\u0085c\x0bd\x0ce".encode())]),
        ("id: 1\n\nid: 2\n\n", []),
        ("id: 1\n\ndata: a\n\n", [ServerSentEvent("1", b"a")]),
        ("id: 1\ndata: a\n\nid\ndata: b\n\n", [ServerSentEvent("1", b"a"), ServerSentEvent("", b"b")]),
        ("id: 1\nid: 2\0\ndata: a\n\n", [ServerSentEvent("1", b"a")]),
        ("event: error\ndata: a\n\ndata: b\n\n", [ServerSentEvent("", b"a", "error"), ServerSentEvent("", b"b")]),
        ("event: error\n\ndata: b\n\n", [ServerSentEvent("", b"b")]),
        ("retry: 5\nnothing: 6\nDATA: 7\ndata\n\n", [ServerSentEvent("", b"")]),
        ("data: a\n\ndata: cut", [ServerSentEvent("", b"a")]),
        ("data: a\n\ndata: cut\n", [ServerSentEvent("", b"a")]),
    ],
)
def test_the_rules_of_the_standard(text, events):
    assert parsed(text) == events


def test_an_event_of_many_lines_is_cut_off_also_if_they_are_empty(monkeypatch):
    """Only their bytes were counted, all of them again at each line: 100 kB took seconds, and an event without end would fill the memory."""
    monkeypatch.setattr(server_sent_events, "MAX_RECORD_BYTES", 100)
    first, whole, cut = messages([*[b"data:"] * 1000, b"", b"data:" + b"x" * 100, b"", b"data:" + b"x" * 100, b"data:", b"data:", b""])
    assert [len(event.text) for event in (first, whole, cut)] == [101, 100, 101], "what is cut off is longer than a record"


def test_a_long_line_may_come_in_many_small_reads():
    """At each read, all of the line was searched again: 300 kB took seconds."""
    assert list(lines([b"x" * 16] * 50_000)) == [b"x" * 800_000]


def expected(text):
    """The events in `text`, by splitting it as a whole."""
    events, event_id = [], ""
    for block in re.split(r"(?<=\n)\n", re.sub(r"\r\n?", "\n", text.removeprefix(MARK)) + "?")[:-1]:
        fields = [re.fullmatch(r"([^:]*)(?:: ?(.*))?", line, re.DOTALL).groups("") for line in block.removesuffix("\n").split("\n")]
        event_id = next((value for name, value in reversed(fields) if name == "id"), event_id)
        kind = next((value for name, value in reversed(fields) if name == "event"), "") or "message"
        if data := [value for name, value in fields if name == "data"]:
            events.append(ServerSentEvent(event_id, "\n".join(data).encode(), kind))
    return events


PARTS = st.sampled_from([MARK, "\r", "\n", "\r\n", "\n\n", ":", " ", "data: ", "data:", "id:", "event: ", "{", "x", "\u2028", "é", "data"])


@given(st.lists(PARTS, max_size=30).map("".join), st.lists(st.integers(0, 60), max_size=6))
def test_how_a_stream_is_cut_into_reads_does_not_matter(text, cuts):
    raw = text.encode()
    places = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    chunks = [raw[start:end] for start, end in pairwise(places)]
    assert list(messages(lines(chunks))) == expected(text)
