"""The windows in the keys of result topics."""

from datetime import datetime
from typing import NamedTuple

import orjson

from infrastructure.rows import moment


class Window(NamedTuple):
    """Start and end of a row's window, UTC."""

    start: datetime
    end: datetime


def window_of(key: bytes) -> Window | None:
    """The window in a row's key. If the key has only a start, that moment. None if it has neither or cannot be read."""
    try:
        row = orjson.loads(key)
        window = {"start": row["started"], "end": row["started"]} if "started" in row else row["window"]
        return Window(moment(window["start"]), moment(window["end"]))
    except (ValueError, KeyError, TypeError):
        return None


def utc(time: datetime) -> str:
    """ISO 8601 with Z, as in the keys."""
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
