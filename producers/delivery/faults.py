"""Injects faults: late records, records beyond the watermark, duplicates, corrupt records.

A pure function over a stream of events: the same events, faults and seed give the same records in the same order. Lateness is measured in
event time. *Stream time* is the greatest event time sent so far. A record is

- **late** when it was held back until others overtook it, but is still within the watermark, so it always counts: every time in it, down to
  `oldest_time_ms`, is at most 80 % of the watermark behind;
- **too late** when it was held back until stream time was two watermarks ahead: a query that follows the stream drops it, whichever partition
  is ahead. One that reads a backlog in a few batches may count it, because the watermark moves only between batches;
- a **duplicate** when the same bytes are sent again soon, within the watermark;
- **corrupt** when it is a damaged copy of an event. The event itself is also sent, so nothing is lost, and every corrupt record is one dead
  letter.

Each event gets at most one fault. At the end of the stream, all records still held back are sent and classified by their lateness at that
moment: late within the watermark, too late otherwise.
"""

import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from contract.json_text import MAX_DIGITS
from infrastructure.errors import StreamgaugeError
from producers.delivery.events import MS_PER_SECOND, Event

LATE_SHARE = 0.8
"""A late record is at most this share of the watermark behind. The rest is a margin."""
DUPLICATE_SHARE = 0.3
"""A duplicate follows within this share of the time available to a late record."""
TOO_LATE_WATERMARKS = 2

Corrupt = Callable[[bytes, int], bytes]
"""A domain's function that corrupts a value. The number, 0, 1, 2 ..., selects the kind of damage. The result is never usable."""


class Kind(StrEnum):
    """How an event was sent."""

    ON_TIME = "on_time"
    LATE = "late"
    TOO_LATE = "too_late"
    DUPLICATE = "duplicate"
    CORRUPT = "corrupt"


class Record(NamedTuple):
    """An event as sent. For CORRUPT, `event.value` is the corrupted value and there are no facts."""

    kind: Kind
    event: Event


@dataclass(frozen=True)
class Faults:
    """Fault rates as fractions of the events. Raises StreamgaugeError when they are more than 1 in total."""

    late: float = 0.0
    too_late: float = 0.0
    duplicates: float = 0.0
    corrupt: float = 0.0
    watermark_seconds: float = 600.0
    seed: int = 0

    def __post_init__(self) -> None:
        if (total := self.late + self.too_late + self.duplicates + self.corrupt) > 1 + 1e-9:
            msg = f"--late, --too-late, --duplicates, --corrupt are {total:g} together; expected at most 1, because an event has at most one fault"
            raise StreamgaugeError(msg)

    @property
    def watermark_ms(self) -> int:
        return int(self.watermark_seconds * MS_PER_SECOND)


class _HeldBack:
    """Records held back until stream time reaches their due time."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Record]] = []
        self._pushed = 0

    def push(self, due_ms: int, record: Record) -> None:
        self._pushed += 1  # keeps the order of equal due times, and avoids comparing records
        heapq.heappush(self._heap, (due_ms, self._pushed, record))

    def pop_due(self, stream_time_ms: float) -> Iterator[Record]:
        while self._heap and self._heap[0][0] <= stream_time_ms:
            yield heapq.heappop(self._heap)[2]


def with_faults(events: Iterable[Event], faults: Faults, corrupt: Corrupt) -> Iterator[Record]:
    """The records to send for `events`, which are ordered by event time. Holds back at most two watermarks' worth of the faulty events."""
    # Independent of the simulation's seed, so that faults do not correlate with its events.
    chance = random.Random(f"faults {faults.seed}").random  # noqa: S311 - a simulation, no secret
    late_below = faults.late
    too_late_below = late_below + faults.too_late
    duplicates_below = too_late_below + faults.duplicates
    corrupt_below = duplicates_below + faults.corrupt
    within_watermark, beyond_watermark = _HeldBack(), _HeldBack()
    stream_time_ms = damaged = 0
    for event in events:
        if not event.is_usable:
            yield Record(Kind.CORRUPT, event)
            continue
        # Send due records before the event that advances stream time, so that they are never later than planned.
        yield from within_watermark.pop_due(event.event_time_ms)
        draw = chance()
        if draw < late_below:
            within_watermark.push(_due_ms(event, faults, 1 - chance()), Record(Kind.LATE, event))
            continue
        if draw < too_late_below:
            due_ms = event.event_time_ms + TOO_LATE_WATERMARKS * faults.watermark_ms
            beyond_watermark.push(due_ms, Record(Kind.TOO_LATE, event))
            continue
        yield Record(Kind.ON_TIME, event)
        stream_time_ms = max(stream_time_ms, event.event_time_ms)
        if draw < duplicates_below:
            within_watermark.push(_due_ms(event, faults, DUPLICATE_SHARE * chance()), Record(Kind.DUPLICATE, event))
        elif draw < corrupt_below:
            yield Record(Kind.CORRUPT, event._replace(value=corrupt(event.value, damaged), facts=(), is_usable=False, acknowledged=None))
            damaged += 1
        yield from beyond_watermark.pop_due(stream_time_ms)
    yield from within_watermark.pop_due(float("inf"))
    for record in beyond_watermark.pop_due(float("inf")):
        counts = stream_time_ms - record.event.oldest_time_ms <= faults.watermark_ms
        yield Record(Kind.LATE if counts else Kind.TOO_LATE, record.event)


def _due_ms(event: Event, faults: Faults, share: float) -> int:
    """The time at `share` of the interval until the oldest time in `event` is LATE_SHARE of the watermark behind."""
    age_ms = event.event_time_ms - event.oldest_time_ms
    return event.event_time_ms + int(share * max(0.0, LATE_SHARE * faults.watermark_ms - age_ms))


def truncated(value: bytes) -> bytes:
    """The first half of the value."""
    return value[: len(value) // 2]


def invalid_utf8(value: bytes) -> bytes:
    """Prepends two bytes that are invalid UTF-8. A reader that replaces them gets no valid JSON either."""
    return b"\xff\xfe" + value


def twice(value: bytes) -> bytes:
    """The value, and once more: a reader that takes the first has lost the second."""
    return value + value


def stray_brace(value: bytes) -> bytes:
    return value + b"}"


def half_a_character(value: bytes) -> bytes:
    """A JSON object with half of a surrogate pair in it, which is no character."""
    return rb'{"note":"\ud83d",' + value.lstrip(b"{")


def without_end(value: bytes) -> bytes:
    """The value in arrays that never end, so deep that a reader which calls itself for each runs out of stack."""
    return b"[" * 2000 + value


def long_number(value: bytes) -> bytes:
    """A JSON object with a number of more digits than readers take."""
    return b'{"note":' + b"9" * (MAX_DIGITS + 1) + b"," + value.lstrip(b"{")


def empty(_: bytes) -> bytes:
    return b""


NO_JSON_TEXT = (truncated, invalid_utf8, twice, stray_brace, half_a_character, without_end, long_number, empty)
"""What makes of a JSON object something that is not one JSON text."""


def damaged_by(*damages: Callable[[bytes], bytes]) -> Corrupt:
    """Applies the kinds of damage in turn, by the number of the copy."""
    return lambda value, number: damages[number % len(damages)](value)
