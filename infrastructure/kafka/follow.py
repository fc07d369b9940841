"""Follows topics for as long as a program runs, whether Kafka answers or not."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.result_table import TableReader, left_out
from infrastructure.process.stop_signals import StopRequest

POLL_SECONDS = 0.5
LOOK_SECONDS = 2
READ_SECONDS = 0.1
RETRY_SECONDS = 2
OpenReader = Callable[[], AbstractContextManager[TableReader]]
Look = Callable[[Sequence[TableReader]], None]


def follow(
    readers: Sequence[OpenReader], look: Look, stop: StopRequest, fail: Callable[[str], None], wait: Callable[[float], object] | None = None
) -> None:
    """Reads topics until the stop is requested, and calls `look` with their readers each time that all have reached the end.

    A single reader is looked at as soon as records have arrived, several are every LOOK_SECONDS. When Kafka does not answer, or a topic was
    recreated, `fail` gets the error, and all readers are opened again. wait: waits for a number of seconds, or until the stop is requested.
    """
    wait = wait or stop.wait
    while not stop.is_set():
        try:
            with ExitStack() as opened:
                # One after the other: a reader that is created and not opened, because Kafka is away, would keep its threads.
                _follow([opened.enter_context(open_reader()) for open_reader in readers], look, stop, wait)
        except StreamgaugeError as error:
            fail(str(error))
            wait(RETRY_SECONDS)


def _follow(readers: Sequence[TableReader], look: Look, stop: StopRequest, wait: Callable[[float], object]) -> None:
    are_several, is_new = len(readers) > 1, True
    while not stop.is_set():
        for reader in readers:
            is_new |= _poll(reader, 0 if are_several else POLL_SECONDS)
        are_read = all(reader.is_caught_up for reader in readers)
        if are_read and (is_new or are_several):
            look(readers)
            is_new = False
        for reader in readers:
            reader.check_when_due()
        if are_several:
            wait(LOOK_SECONDS if are_read else READ_SECONDS)


def _poll(reader: TableReader, seconds: float) -> bool:
    """Applies the records that have arrived, for at most about LOOK_SECONDS, so that `look` is called. Returns whether there were any."""
    until = time.monotonic() + LOOK_SECONDS
    is_new = has_more = reader.poll(seconds)
    while has_more and time.monotonic() < until:
        has_more = reader.poll(0)
    return is_new


class Warnings:
    """Gives `warn` each line once, for as long as its cause lasts."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn, self._current = warn, set[str]()

    def add(self, line: str) -> None:
        """Adds a warning. The current ones still apply."""
        self.tell({*self._current, line})

    def tell(self, lines: Iterable[str]) -> None:
        """Replaces the current warnings."""
        current = set(lines)
        for line in current - self._current:
            self._warn(line)
        self._current = current


def rows_left_out(readers: Iterable[TableReader]) -> set[str]:
    """A line for each reader with rows that cannot be read."""
    return {line for reader in readers if (line := left_out(reader.topic, reader.table.unreadable))}
