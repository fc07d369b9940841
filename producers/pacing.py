"""Lets items through at a rate, by the wall clock and without drift.

Item n is due n / rate seconds after the first. Every wait is for that moment and not for a fixed time, so a wait that was too long, or a
stall further on, is made up for; and items that are due within the same few milliseconds share one wait.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

BATCH_SECONDS = 0.02
"""Items due within this time go together: 1,000 a second are 50 short waits, not 1,000."""
LONGEST_WAIT_SECONDS = 0.1
"""A longer wait is divided, so that a stop is noticed in time."""


def paced(
    items: Iterable[T],
    rate: float | None,
    *,
    clock: Callable[[], float],
    wait: Callable[[float], object],
    is_stopped: Callable[[], bool] = lambda: False,
) -> Iterator[T]:
    """The same items, `rate` a second (None: as fast as they are taken), until they or the patience of `is_stopped` end.

    clock: seconds, monotonic. wait: is given seconds, and returns after about as many, or earlier.
    """
    batch = max(1, int(rate * BATCH_SECONDS)) if rate else 1
    start = clock()
    for passed, item in enumerate(items):
        if rate and passed % batch == 0:
            due = start + passed / rate
            while (seconds := due - clock()) > 0 and not is_stopped():
                wait(min(seconds, LONGEST_WAIT_SECONDS))
        if is_stopped():
            return
        yield item
