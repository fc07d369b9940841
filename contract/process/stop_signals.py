"""SIGTERM and SIGINT as an event that a program checks where it can stop cleanly."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable


class StopRequest(threading.Event):
    """An event that calls `wake` when it is set. A signal handler may set it, so `wake` must not block."""

    wake: Callable[[], None] = staticmethod(lambda: None)

    def set(self) -> None:
        """Requests the stop."""
        super().set()
        self.wake()


def stop_requested(event: StopRequest | None = None) -> StopRequest:
    """Makes either signal set an event, `event` if given, instead of ending the program."""
    event = event or StopRequest()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: event.set())
    return event


def end_at_once() -> None:
    """Makes either signal end the program and its children at once: there is nothing to finish yet."""
    import psutil  # not at the top: every command imports this module

    def end(*_: object) -> None:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
