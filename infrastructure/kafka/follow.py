"""Follows topics for as long as a program runs, whether Kafka answers or not."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from threading import Event

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.result_table import TableReader, left_out

POLL_SECONDS = 0.5
LOOK_SECONDS = 2
READ_SECONDS = 0.1
RETRY_SECONDS = 2
OpenReader = Callable[[], AbstractContextManager[TableReader]]
Look = Callable[[Sequence[TableReader]], None]


def follow(
    readers: Sequence[OpenReader], look: Look, stop: Event, fail: Callable[[str], None], wait: Callable[[float], object] | None = None
) -> None:
    """Reads topics until the stop is requested, and gives their readers to `look` when all have reached the end, and again and again.

    Of one reader, `look` is called as soon as records have come; of several, every LOOK_SECONDS. When Kafka does not answer, or a topic was created
    again, `fail` gets the error, and all are opened again. wait: waits so many seconds, or until the stop is requested.
    """
    wait = wait or stop.wait
    while not stop.is_set():
        try:
            with ExitStack() as opened:
                # One after the other: what is made and not opened, because Kafka is away, would keep its threads.
                _follow([opened.enter_context(open_reader()) for open_reader in readers], look, stop, wait)
        except StreamgaugeError as error:
            fail(str(error))
            wait(RETRY_SECONDS)


def _follow(readers: Sequence[TableReader], look: Look, stop: Event, wait: Callable[[float], object]) -> None:
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
    """Applies what has come. Of a flood, the rest is read after the next look. Returns whether anything has."""
    until = time.monotonic() + LOOK_SECONDS
    is_new = has_more = reader.poll(seconds)
    while has_more and time.monotonic() < until:
        has_more = reader.poll(0)
    return is_new


class Warnings:
    """Gives `warn` each line once, for as long as its cause lasts."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn, self._lasting = warn, set[str]()

    def add(self, line: str) -> None:
        """A cause that has come; the others may last."""
        self.tell({*self._lasting, line})

    def tell(self, lines: Iterable[str]) -> None:
        """All that last. The others are over."""
        found = set(lines)
        for line in found - self._lasting:
            self._warn(line)
        self._lasting = found


def rows_left_out(readers: Iterable[TableReader]) -> set[str]:
    """A line for each reader with rows that cannot be read."""
    return {line for reader in readers if (line := left_out(reader.topic, reader.table.unreadable))}
