"""SIGTERM and SIGINT as an event that a program looks at where it can end in an orderly way."""

import signal
import threading
from collections.abc import Callable


class StopRequest(threading.Event):
    """An event, which calls `wake` when it is set: for a program that waits for something else. A signal may set it: `wake` must not block."""

    wake: Callable[[], None] = staticmethod(lambda: None)

    def set(self) -> None:
        """Requests the stop."""
        super().set()
        self.wake()


def stop_requested() -> StopRequest:
    """An event that either signal sets, from now on, instead of ending the program."""
    event = StopRequest()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: event.set())
    return event
