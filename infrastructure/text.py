"""Formats times, durations and sizes, and makes text safe to show: no passwords, no terminal escape sequences."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_SHORT_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))

_UP_TO_AT = re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]*@")
"""Matches a word up to its last @, because a password may contain @ or a slash."""
_CREDENTIALS = re.compile(r"(?i)(?<=[a-z0-9+.-])(?<!\babfss)://.*")
"""In abfss://container@account/folder the @ marks no password."""


def without_credentials(text: str) -> str:
    """The text with *** in place of user name and password in each URL."""
    return _UP_TO_AT.sub(lambda found: _CREDENTIALS.sub("://***@", found[0]), text)


def printable(text: str) -> str:
    """The text on one line, with a replacement character for each unprintable one. A terminal would execute escape sequences."""
    return "".join(
        character if character.isprintable() else " " if character in "\t\n\r" else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def escaped(text: str) -> str:
    """The text on one line, with JSON's escapes for unprintable characters. JSON without line breaks keeps its meaning.

    Unlike `printable`, it loses nothing.
    """
    return text if text.isprintable() else "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def utc_text(moment: datetime) -> str:
    """A timestamp as in topics: ISO 8601, UTC, with milliseconds and Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(length: timedelta) -> str:
    """A duration in its two largest units: "41 s", "3 min 20 s", "2 h 5 min", "3 d 4 h". Never negative, because clocks differ."""
    seconds = max(0, int(length.total_seconds()))
    for (unit, size), (smaller_unit, smaller_size) in pairwise(_UNITS):
        count, rest = divmod(seconds, size)
        if count:
            smaller = rest // smaller_size
            return f"{count} {unit} {smaller} {smaller_unit}" if smaller else f"{count} {unit}"
    return f"{seconds} s"


def size_text(size_bytes: int) -> str:
    """A size: "12 bytes", "3.4 kB", "176 MB"."""
    for unit, factor in _SIZES:
        if size_bytes >= factor:
            return f"{size_bytes / factor:.{1 if size_bytes < 10 * factor else 0}f} {unit}"
    return f"{size_bytes} {'byte' if size_bytes == 1 else 'bytes'}"


def behind(age_ms: int | None) -> str:
    """How far a watermark is behind the clock, such as "3 min 20 s ago", or "ahead" of it when a producer speeds up event time."""
    if age_ms is None:
        return ""
    return f"{duration(timedelta(milliseconds=abs(age_ms)))} {'ahead' if age_ms < 0 else 'ago'}"
