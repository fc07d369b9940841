"""Lets items through by the wall clock and without drift: so many a second, or as fast as the event time in them passes, times a factor.

At a rate, item n is due n / rate seconds after the first; by event time, when that time has passed. Every wait is for that moment and not for
a fixed time, so a wait that was too long, or a stall further on, is made up for; and items that are due within the same few milliseconds
share one wait.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from producers.delivery.events import MS_PER_SECOND, Event

T = TypeVar("T")

BATCH_SECONDS = 0.02
"""Items due within this time go together: 1,000 a second are 50 short waits, not 1,000."""
LONGEST_WAIT_SECONDS = 0.1
"""A longer wait is divided, so that a stop is noticed in time."""
LONGEST_PAUSE_MS = 3_600_000
"""A longer pause in event time is played as one of this length: a recording may hold an event that is years older than the others."""

Clock = Callable[[], float]
"""Seconds, monotonic."""
Wait = Callable[[float], object]
"""Is given seconds, and returns after about as many, or earlier."""


def paced(
    items: Iterable[T],
    rate: float | None,
    *,
    clock: Clock,
    wait: Wait,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[T]:
    """The same items, `rate` a second (None: as fast as they are taken), until they or the patience of `is_stopped` end."""
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
    """The same events, `speed_up` seconds of event time a second, until they or the patience of `is_stopped` end."""
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
