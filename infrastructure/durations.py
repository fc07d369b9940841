"""Durations in settings and options: "10 minutes", "1 hour 30 minutes"."""

import re

from infrastructure.errors import StreamgaugeError

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_MOST_DAYS = 36_525  # a century: readers refuse rows of longer windows
_PART = r"(\d+(?:\.\d+)?)\s+(second|minute|hour|day)s?"
_FLAGS = re.IGNORECASE | re.ASCII  # as Spark, which reads the same text


def seconds(text: str, name: str) -> float:
    """Parses the duration `text` to seconds. Raises StreamgaugeError, naming the value `name`, if it is none, zero, or too long."""
    is_duration = re.fullmatch(rf"\s*{_PART}(?:\s+{_PART})*\s*", text, _FLAGS)
    total = sum(float(count) * _SECONDS[unit.lower()] for count, unit in re.findall(_PART, text, _FLAGS))
    if not is_duration or not 0 < total <= _MOST_DAYS * _SECONDS["day"]:
        msg = f'{name} is {text!r}; expected a duration above zero, and at most {_MOST_DAYS} days, such as "10 minutes" or "1 hour 30 minutes"'
        raise StreamgaugeError(msg)
    return total


def microseconds(text: str, name: str) -> int:
    """As `seconds`, in whole microseconds."""
    return round(seconds(text, name) * 1_000_000)
