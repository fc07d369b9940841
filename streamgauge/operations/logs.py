"""The logs in a STREAMGAUGE_HOME, by part: of the demo's children, the embedded servers, Spark and the hourly maintenance."""

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from contract.errors import StreamgaugeError, check_names
from contract.settings import Settings
from contract.text import printable
from streamgauge.platform.platform import NAME_WIDTH

LOOK_SECONDS = 0.2
"""How often a log that is followed is asked for more."""
TAIL_BYTES = 1024 * 1024
"""How far back the last lines of a log are looked for."""


class Log:
    """Reads a log file, line by line. One that is renamed is read to its end, and then the one in its place."""

    def __init__(self, path: Path) -> None:
        self._path, self._file, self._rest = path, path.open("rb"), b""

    def last(self, count: int) -> Iterable[str]:
        """The last lines, at most `count`, as a first call."""
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
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        yield from map(_text, lines)


def parts(settings: Settings) -> dict[str, list[Path]]:
    """The log files by part, such as "kafka": kafka.log, and kafka.out with what it printed."""
    found: dict[str, list[Path]] = {}
    for path in sorted([*settings.logs.glob("*.log"), *settings.logs.glob("*.out")]):
        found.setdefault(path.stem, []).append(path)
    return found


def lines(settings: Settings, part: str | None, count: int, *, follow: bool) -> Iterator[str]:
    """The last `count` lines of each log of a part, or of all, and then those that follow, without end. Of several parts, each with its name.

    Raises StreamgaugeError if there is no such part, or none at all.
    """
    if not (there := parts(settings)):
        msg = f"there are no logs in {settings.logs}; `streamgauge demo`, `up` and `run` write them"
        raise StreamgaugeError(msg)
    if part is not None:
        check_names("log of", [part], there)
    logs: dict[Path, Log] = {}
    for path in _paths(settings, part):
        logs[path] = Log(path)
        last = [*logs[path].last(count), *([] if follow else logs[path].unfinished())]
        yield from (_named(path, line, part) for line in last)
    while follow:
        time.sleep(LOOK_SECONDS)
        for path in _paths(settings, part):
            if path not in logs:
                logs[path] = Log(path)
            yield from (_named(path, line, part) for line in logs[path].lines())


def _paths(settings: Settings, part: str | None) -> list[Path]:
    return [path for name, paths in parts(settings).items() if part in {None, name} for path in paths]


def _named(path: Path, line: str, part: str | None) -> str:
    return f"{path.stem:{NAME_WIDTH}} | {line}" if part is None else line


def _text(line: bytes) -> str:
    return printable(line.decode(errors="replace").rstrip("\r"))
