"""Releases items by the wall clock without drift: at a fixed rate, or at the speed of event time multiplied by a factor.

At a rate, item n is due n / rate seconds after the first. By event time, an item is due when that time has passed. Each wait is for a due
time, not for a fixed duration, so a wait that was too long or a stall downstream is compensated.

Items leave together five times a second: a record that travels alone costs the broker a request, and each reader of its topic another.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from math import ceil
from typing import TypeVar

from producers.delivery.events import MS_PER_SECOND, Event

T = TypeVar("T")

BATCH_SECONDS = 0.2
"""An item leaves at the end of the interval of this length in which it is due."""
MAX_WAIT_SECONDS = 0.1
"""Longer waits are split, so that a stop is noticed in time."""
MAX_PAUSE_MS = 3_600_000
"""A longer pause in event time is shortened to this: a recording may contain an event that is years older than the others."""

Clock = Callable[[], float]
"""Seconds, monotonic."""
Wait = Callable[[float], object]
"""Waits for about the given seconds, or less."""


def paced(
    items: Iterable[T],
    due_seconds: Callable[[T], float],
    *,
    clock: Clock,
    wait: Wait,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[T]:
    """Yields each item once it is due, until they end or `is_stopped` returns True. due_seconds: when, in seconds after the first item."""
    start: float | None = None
    for item in items:
        start = clock() if start is None else start
        due = ceil(round(due_seconds(item) / BATCH_SECONDS, 6)) * BATCH_SECONDS  # rounded, as floats are not exact
        while (left := start + due - clock()) > 0 and not is_stopped():
            wait(min(left, MAX_WAIT_SECONDS))
        if is_stopped():
            return
        yield item


def at_rate(rate: float | None) -> Callable[[object], float]:
    """Items are due at `rate` per second. None: at once."""
    numbers = count()
    return lambda _: next(numbers) / rate if rate else 0.0


def by_event_time(speed_up: float) -> Callable[[Event], float]:
    """Events are due at `speed_up` seconds of event time per second."""
    newest_ms: int | None = None
    due = 0.0

    def due_seconds(event: Event) -> float:
        nonlocal newest_ms, due
        pause_ms = 0 if newest_ms is None else max(0, event.event_time_ms - newest_ms)
        newest_ms = event.event_time_ms if newest_ms is None else newest_ms + pause_ms
        due += min(pause_ms, MAX_PAUSE_MS) / MS_PER_SECOND / speed_up
        return due

    return due_seconds
