"""Replays recorded changes: raw server-sent events, or one JSON object per line. A file may contain both."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from producers.wikimedia.server_sent_events import messages

_FIELDS = (b"data", b"event", b"id", b"retry", b"")


def replay(path: Path) -> Iterator[bytes]:
    """The text of each event in the file, valid or not."""
    with path.open("rb") as file:
        for message in messages(_as_server_sent(file)):
            yield message.text


def _as_server_sent(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        text = line.rstrip()
        if text.partition(b":")[0] in _FIELDS:
            yield text
        else:
            yield from (b"", b"data:" + text, b"")
    yield b""  # missing if the recording was stopped by hand
