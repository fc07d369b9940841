"""Parses server-sent events, live or recorded, as https://html.spec.whatwg.org/multipage/server-sent-events.html says."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from contract.topics import MAX_RECORD_BYTES
from producers.delivery.recordings import opened

MESSAGE = "message"
"""The type of an event that states none."""
_LINE_BYTES = MAX_RECORD_BYTES + 100  # with the name of a field
_FIELDS = (b"data", b"event", b"id", b"retry", b"")
_READ_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """A complete event of a stream: its id, or that of the event before it ("" if there is none), its text, and its type.

    A text of more than MAX_RECORD_BYTES is cut off somewhere after them.
    """

    id: str
    text: bytes
    type: str = MESSAGE


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream without their ends (LF, CR or CRLF) and without a byte order mark, each as soon as it is complete.

    Bytes after the last end come last. A line of more than MAX_RECORD_BYTES is cut off somewhere after them.
    """
    rest, ends_with_cr = bytearray(), False
    for chunk in _without_mark(iter(chunks)):
        data = chunk.removeprefix(b"\n") if ends_with_cr else chunk
        ends_with_cr = chunk.endswith(b"\r")
        *complete, last = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in complete:
            yield bytes(rest) + line
            rest.clear()
        rest += last
        del rest[_LINE_BYTES:]
    if rest:
        yield bytes(rest)


def messages(lines: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """The events in `lines`, which come without their ends. An event ends with an empty line; one that has no data is skipped."""
    event_id, kind = "", MESSAGE
    data: list[bytes] = []
    size = -1  # of the text, with a line break between two lines
    for line in lines:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            if size <= MAX_RECORD_BYTES:
                data.append(value)
                size += len(value) + 1
        elif field == b"id" and b"\0" not in value:
            # As requests encodes a header: any bytes are sent back as they came.
            event_id = value.decode("latin-1")
        elif field == b"event":
            kind = value.decode(errors="replace") or MESSAGE
        elif not line:
            if data:
                yield ServerSentEvent(event_id, b"\n".join(data), kind)
            data, size, kind = [], -1, MESSAGE


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= len(_BYTE_ORDER_MARK):
            break
    yield start.removeprefix(_BYTE_ORDER_MARK)
    yield from filter(None, chunks)


def replay(path: Path) -> Iterator[ServerSentEvent]:
    """Each event in a recording, valid or not: a file of server-sent events, of one JSON object per line, or of both."""
    with opened(path) as file:
        yield from messages(_as_server_sent(lines(iter(partial(file.read, _READ_BYTES), b""))))


def _as_server_sent(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        if line.isspace() or line.partition(b":")[0] in _FIELDS:
            yield line.rstrip()
        else:
            yield from (b"", b"data:" + line, b"")
    yield b""  # missing if the recording was stopped by hand
