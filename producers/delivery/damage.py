"""Ways to damage a record's value, for domains whose values are JSON."""

from collections.abc import Callable

from producers.delivery.faults import Corrupt

Damage = Callable[[bytes], bytes]


def truncated(value: bytes) -> bytes:
    """The first half."""
    return value[: len(value) // 2]


def invalid_utf8(value: bytes) -> bytes:
    """Two bytes that are no UTF-8 in front, so that a reader that replaces them has no JSON either."""
    return b"\xff\xfe" + value


def empty(_: bytes) -> bytes:
    """Nothing."""
    return b""


def damaged_by(*damages: Damage) -> Corrupt:
    """The kinds of damage take turns by the number of the copy."""
    return lambda value, number: damages[number % len(damages)](value)
