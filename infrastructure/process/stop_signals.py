"""SIGTERM and SIGINT: as an event that a program checks where it can stop cleanly, as an end at once, or postponed."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue

from infrastructure.errors import StreamgaugeError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(StreamgaugeError):  # noqa: N818 - it names what happened
    """A signal came before the work was done. The exit code is that of a program that a signal ends, so that a scheduler sees it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name} before everything was processed; the next run continues from here")
        self.exit_code = 128 + number


class StopRequest:
    """An event that calls `wake` when it is set. A signal handler may set it, so `wake` must not block. number: of the signal, if one came.

    Unlike threading.Event, it has no lock: a handler that interrupts the thread which holds that lock would wait forever.
    """

    wake: Callable[[], None] = staticmethod(lambda: None)
    number: int | None = None

    def __init__(self) -> None:
        self._is_set = False
        self._is_woken: SimpleQueue[None] = SimpleQueue()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._is_woken.put(None)
        self.wake()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, for `timeout` seconds at most. Returns whether it is."""
        if not self._is_set:
            with contextlib.suppress(Empty):
                self._is_woken.get(timeout=timeout)
                self._is_woken.put(None)  # for other threads that wait
        return self._is_set

    def on_signal(self, number: int, _: object) -> None:
        self.number = number
        self.set()


def stop_requested(event: StopRequest | None = None) -> StopRequest:
    """Makes either signal set an event, `event` if given, instead of ending the program."""
    event = event or StopRequest()
    for number in SIGNALS:
        signal.signal(number, event.on_signal)
    return event


def end_at_once(*, fails: bool) -> None:
    """Makes either signal end the program and its children at once: there is nothing to finish yet.

    fails: whether that leaves work undone, which the exit code and a line then say.
    """
    import psutil  # not at the top: every command imports this module

    def end(number: int, _: object) -> None:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if fails:
            os.write(sys.stderr.fileno(), f"error: {Stopped(number)}\n".encode())  # not `print`, which the signal may have interrupted
        os._exit(Stopped(number).exit_code if fails else 0)

    for number in SIGNALS:
        signal.signal(number, end)


@contextlib.contextmanager
def postponed_signals() -> Iterator[None]:
    """Lets neither signal interrupt the block. One that comes meanwhile takes effect after it, in the main thread."""
    if threading.current_thread() is not threading.main_thread():  # which no signal interrupts
        yield
        return
    received: list[int] = []
    before = {number: signal.signal(number, lambda number, _: received.append(number)) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])
