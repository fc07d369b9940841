"""How long programs wait, and what they print meanwhile. A wait does not end while the thing waited for makes progress."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # slow to import
    import psutil

REMIND_SECONDS = 30
"""The interval at which a wait says what it waits for."""
RETRY_SECONDS = 0.1
ENDED_SECONDS = 0.02
"""How often a process is asked whether it has ended."""
REQUEST_SECONDS = 2
"""The timeout of a request that is repeated anyway. Ctrl-C takes effect between two of them."""
AWAY_SECONDS = 300
"""How long a producer waits for a Kafka that does not answer."""
FINISH_SECONDS = 10
"""How long a program that is being stopped may take to finish: a query its batch, a producer its deliveries."""

Say = Callable[[str], None]


class Reminder:
    """Is due every REMIND_SECONDS."""

    def __init__(self) -> None:
        self._started = self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since it was created."""
        return time.monotonic() - self._started

    def is_due(self) -> bool:
        """Whether REMIND_SECONDS have passed since it was created, or was last due."""
        if time.monotonic() - self._last < REMIND_SECONDS:
            return False
        self._last = time.monotonic()
        return True


def waiting(description: Callable[[], str], say: Say) -> Iterator[float]:
    """Yields the seconds waited so far, every RETRY_SECONDS, until the caller breaks. When a reminder is due, `say` gets the description."""
    reminder = Reminder()
    while True:
        yield reminder.seconds
        if reminder.is_due():
            say(f"waiting for {description()} ({reminder.seconds:.0f} s so far)")
        time.sleep(RETRY_SECONDS)


def has_ended(process: "psutil.Process", seconds: float) -> bool:
    """Whether the process ends within `seconds`. One that nobody has waited for (a zombie) has ended: in a container that may stay so."""
    deadline = time.monotonic() + seconds
    while _runs(process):
        if time.monotonic() >= deadline:
            return False
        time.sleep(ENDED_SECONDS)
    return True


def _runs(process: "psutil.Process") -> bool:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
