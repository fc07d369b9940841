"""How long things are waited for, and what is said meanwhile: what comes up is waited for as long as it gets on, and after a while that is said."""

import time
from collections.abc import Callable, Iterator

REMIND_SECONDS = 30
"""So often something that is still waited for is named."""
RETRY_SECONDS = 0.1
STALL_SECONDS = 60
"""A server that starts, and writes no log and uses no CPU for so long, hangs."""
PORT_SECONDS = 5
"""How long a port that nobody is seen to listen on may still be taken, by a process that was killed."""
REQUEST_SECONDS = 2
"""How long one question may take when it is asked again anyway; Ctrl-C has its effect between two."""
AWAY_SECONDS = 300
"""How long a producer waits for a Kafka that does not answer, or has gone away."""
FINISH_SECONDS = 10
"""How long what is stopped may take to finish: a query its batch, a producer what it has sent."""
STOP_SECONDS = FINISH_SECONDS + 15
"""How long a process may take to end before it is killed: what it finishes, and the stop of Spark (its own limit is 10 s) if it has one."""
SERVER_STOP_SECONDS = 8
"""The same for a broker or a registry."""
BACK_OFF_SECONDS = 30
"""The demo starts again what has ended after 1, 2, 4 ... seconds, and no more than these."""
STEADY_SECONDS = 60
"""After so long a time without an end, the next one is the first again."""
REFUSED_STARTS = 3
"""So often in a row a process may be impossible to start, because its port is taken, say, before the demo ends."""

Say = Callable[[str], None]


class Reminder:
    """Is due each time that REMIND_SECONDS have passed."""

    def __init__(self) -> None:
        self._started = self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it was made."""
        return time.monotonic() - self._started

    def is_due(self) -> bool:
        """Whether REMIND_SECONDS have passed since it was made, or was due."""
        if time.monotonic() - self._last < REMIND_SECONDS:
            return False
        self._last = time.monotonic()
        return True


def waiting(what: Callable[[], str], say: Say) -> Iterator[float]:
    """Yields the seconds waited so far, RETRY_SECONDS apart, until whoever iterates breaks off; says now and then `what` is waited for."""
    reminder = Reminder()
    while True:
        yield reminder.seconds
        if reminder.is_due():
            say(f"waiting for {what()} ({reminder.seconds:.0f} s so far)")
        time.sleep(RETRY_SECONDS)
