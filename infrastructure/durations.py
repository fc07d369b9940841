"""Durations in settings and options: "10 minutes", "1 hour 30 minutes"."""

import re

from infrastructure.errors import StreamgaugeError

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(second|minute|hour|day)s?", re.IGNORECASE)


def seconds(text: str, name: str) -> float:
    """Parses the duration `text` to seconds. Raises StreamgaugeError, naming the value `name`, if it is not a duration or is zero."""
    parts = _PART.findall(text)
    total = sum(float(count) * _SECONDS[unit.lower()] for count, unit in parts)
    if _PART.sub("", text).strip() or total <= 0:
        msg = f'{name} is {text!r}; expected a duration above zero, such as "10 minutes" or "1 hour 30 minutes"'
        raise StreamgaugeError(msg)
    return total


def microseconds(text: str, name: str) -> int:
    """As `seconds`, in whole microseconds."""
    return round(seconds(text, name) * 1_000_000)
