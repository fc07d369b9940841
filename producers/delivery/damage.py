"""Ways to corrupt a record's value, for domains with JSON values."""

from collections.abc import Callable

from producers.delivery.faults import Corrupt

Damage = Callable[[bytes], bytes]


def truncated(value: bytes) -> bytes:
    """The first half of the value."""
    return value[: len(value) // 2]


def invalid_utf8(value: bytes) -> bytes:
    """Prepends two bytes that are invalid UTF-8. A reader that replaces them gets no valid JSON either."""
    return b"\xff\xfe" + value


def empty(_: bytes) -> bytes:
    """An empty value."""
    return b""


def damaged_by(*damages: Damage) -> Corrupt:
    """Applies the kinds of damage in turn, by the number of the copy."""
    return lambda value, number: damages[number % len(damages)](value)
