"""Replays recorded changes: raw server-sent events, or one JSON object per line. A file may contain both."""

from collections.abc import Callable, Iterator
from pathlib import Path

from contract.text import is_json

_FIELDS = (b"data", b"event", b"id", b"retry", b"")


def replay(path: Path, notice: Callable[[str], None]) -> Iterator[bytes]:
    """The text of each event in the file, valid or not. Skips a last event that was cut off, and reports that to `notice`."""
    data: list[bytes] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            text = line.rstrip(b"\r\n")
            field, colon, value = text.partition(b":")
            if not text.strip():
                if data:
                    yield b"\n".join(data)
                data = []
            elif field == b"data":
                data.append(value.removeprefix(b" "))
            elif field not in _FIELDS or not colon:
                if line.endswith(b"\n") or is_json(text):
                    yield text
                else:
                    notice(_cut_off(path, number, text))
    if data:
        # The empty line that ends an event may be missing if a recording was stopped manually.
        text = b"\n".join(data)
        if is_json(text):
            yield text
        else:
            notice(_cut_off(path, number, text))


def _cut_off(path: Path, number: int, text: bytes) -> str:
    return f"{path} is cut off in its last event (line {number}, {len(text)} bytes), which is left out; all before it is sent"
