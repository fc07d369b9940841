"""SIGTERM and SIGINT as an event that a program looks at where it can end in an orderly way."""

import os
import signal
import threading
from collections.abc import Callable

import psutil


class StopRequest(threading.Event):
    """An event, which calls `wake` when it is set: for a program that waits for something else. A signal may set it: `wake` must not block."""

    wake: Callable[[], None] = staticmethod(lambda: None)

    def set(self) -> None:
        """Requests the stop."""
        super().set()
        self.wake()


def stop_requested(event: StopRequest | None = None) -> StopRequest:
    """An event, or this one, that either signal sets, from now on, instead of ending the program."""
    event = event or StopRequest()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: event.set())
    return event


def end_at_once() -> None:
    """Has either signal end the program, and what it has started, from now on: there is nothing to finish yet."""

    def end(*_: object) -> None:
        for process in psutil.Process().children(recursive=True):
            process.kill()
        os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
