"""Replays recorded changes: server-sent events as they came over the wire, or one JSON object a line; in one file, both may be."""

from collections.abc import Callable, Iterator
from pathlib import Path

from contract.errors import StreamgaugeError
from contract.text import is_json

_FIELDS = (b"data", b"event", b"id", b"retry", b"")


def replay(path: Path, notice: Callable[[str], None]) -> Iterator[bytes]:
    """The text of each event in the file, valid or not; `notice` is told of a last one that was cut off, which is left out.

    Raises StreamgaugeError, at once, when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        msg = f"--file {path} cannot be read ({error.strerror}); expected recorded changes, as server-sent events or one JSON object a line"
        raise StreamgaugeError(msg) from error
    return _texts(path, notice)


def _texts(path: Path, notice: Callable[[str], None]) -> Iterator[bytes]:
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
        # The empty line that ends an event may be missing where a recording was ended by hand.
        text = b"\n".join(data)
        if is_json(text):
            yield text
        else:
            notice(_cut_off(path, number, text))


def _cut_off(path: Path, number: int, text: bytes) -> str:
    return f"{path} is cut off in its last event (line {number}, {len(text)} bytes), which is left out; all before it is sent"
