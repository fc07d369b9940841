"""A log file that is read while a program writes it."""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from infrastructure.text import printable

TAIL_BYTES = 1024 * 1024
"""How far back the last lines of a log are looked for."""


class Log:
    """Reads a log file, line by line. After a rename, it reads the old file to its end, and continues with the new one."""

    def __init__(self, path: Path, begin_bytes: int = 0) -> None:
        self._path, self._file, self._rest = path, path.open("rb"), b""
        self._file.seek(begin_bytes)

    def last(self, count: int) -> Iterable[str]:
        """The last lines, at most `count`. To be called first."""
        self._file.seek(max(0, self._path.stat().st_size - TAIL_BYTES))
        return deque(self.lines(), maxlen=count)

    def lines(self) -> Iterator[str]:
        """The lines that were completed since the last call."""
        yield from self._to_the_end()
        with suppress(FileNotFoundError):  # it is just being renamed
            if self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino:
                yield from self._to_the_end()
                yield from self.unfinished()
                self._file.close()
                self._file = self._path.open("rb")
                yield from self._to_the_end()

    def unfinished(self) -> Iterator[str]:
        """The line that has no end yet, if there is one."""
        if self._rest:
            yield _text(self._rest)
        self._rest = b""

    def _to_the_end(self) -> Iterator[str]:
        if os.fstat(self._file.fileno()).st_size < self._file.tell():
            yield from self.unfinished()  # the log was emptied, as logrotate's copytruncate does
            self._file.seek(0)
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        yield from map(_text, lines)


def log_tail(path: Path, count: int = 5) -> str:
    """The last lines of a log, for error messages about its process."""
    if not path.exists():
        return ""
    log = Log(path)
    return "\n".join([*log.last(count), *log.unfinished()][-count:])


def _text(line: bytes) -> str:
    return printable(line.decode(errors="replace").rstrip("\r"))
