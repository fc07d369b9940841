"""Replays recorded changes: raw server-sent events, or one JSON object per line. A file may contain both."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from producers.wikimedia.server_sent_events import ServerSentEvent, lines, messages

_FIELDS = (b"data", b"event", b"id", b"retry", b"")
_READ_BYTES = 1024 * 1024


def replay(path: Path) -> Iterator[ServerSentEvent]:
    """Each event in the file, valid or not."""
    with path.open("rb") as file:
        yield from messages(_as_server_sent(lines(iter(partial(file.read, _READ_BYTES), b""))))


def _as_server_sent(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        if line.isspace() or line.partition(b":")[0] in _FIELDS:
            yield line.rstrip()
        else:
            yield from (b"", b"data:" + line, b"")
    yield b""  # missing if the recording was stopped by hand
