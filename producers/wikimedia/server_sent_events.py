"""Parses server-sent events, live or recorded."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Message(NamedTuple):
    """A complete event of a stream: its id, or that of the event before it ("" if there is none), and its text."""

    id: str
    text: bytes


def messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """The events in `lines`, which come without their ends. An event ends with an empty line; one that has no data is skipped."""
    event_id = ""
    data: list[bytes] = []
    for line in lines:
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"id":
            # As requests encodes a header: any bytes are sent back as they came.
            event_id = value.removeprefix(b" ").decode("latin-1")
        elif not line and data:
            yield Message(event_id, b"\n".join(data))
            data = []
