"""Releases items by the wall clock without drift: at a fixed rate, or at the speed of event time multiplied by a factor.

At a rate, item n is due n / rate seconds after the first. By event time, an item is due when that time has passed. Each wait is for a due
time, not for a fixed duration, so a wait that was too long or a stall downstream is compensated. Items due within the same few milliseconds
share one wait.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from producers.delivery.events import MS_PER_SECOND, Event

T = TypeVar("T")

BATCH_SECONDS = 0.02
"""Items due within this time are released together: 1,000 per second take 50 waits, not 1,000."""
LONGEST_WAIT_SECONDS = 0.1
"""Longer waits are split, so that a stop is noticed in time."""
LONGEST_PAUSE_MS = 3_600_000
"""A longer pause in event time is shortened to this: a recording may contain an event that is years older than the others."""

Clock = Callable[[], float]
"""Seconds, monotonic."""
Wait = Callable[[float], object]
"""Waits for about the given seconds, or less."""


def paced(
    items: Iterable[T],
    rate: float | None,
    *,
    clock: Clock,
    wait: Wait,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[T]:
    """Yields the items at `rate` per second (None: without delay), until they end or `is_stopped` returns True."""
    batch = max(1, int(rate * BATCH_SECONDS)) if rate else 1
    start = clock()
    for passed, item in enumerate(items):
        if rate and passed % batch == 0:
            _wait_until(start + passed / rate, clock, wait, is_stopped)
        if is_stopped():
            return
        yield item


def paced_by_event_time(
    events: Iterable[Event],
    speed_up: float,
    *,
    clock: Clock,
    wait: Wait,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Yields the events at `speed_up` seconds of event time per second, until they end or `is_stopped` returns True."""
    newest_ms: int | None = None
    start = played = waited_for = 0.0
    for event in events:
        if newest_ms is None:
            start, newest_ms = clock(), event.event_time_ms
        pause_ms = max(0, event.event_time_ms - newest_ms)
        newest_ms += pause_ms
        played += min(pause_ms, LONGEST_PAUSE_MS) / MS_PER_SECOND / speed_up
        if played - waited_for >= BATCH_SECONDS:
            _wait_until(start + played, clock, wait, is_stopped)
            waited_for = played
        if is_stopped():
            return
        yield event


def _wait_until(due: float, clock: Clock, wait: Wait, is_stopped: Callable[[], bool]) -> None:
    while (seconds := due - clock()) > 0 and not is_stopped():
        wait(min(seconds, LONGEST_WAIT_SECONDS))
