"""The logs in a STREAMGAUGE_HOME, by part: of the demo's children, the embedded servers, Spark and the hourly maintenance."""

import time
from collections.abc import Iterator
from pathlib import Path

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.settings import Settings
from streamgauge.platform.log_file import Log
from streamgauge.platform.platform import NAME_WIDTH

LOOK_SECONDS = 0.2
"""How often a log that is followed is asked for more."""


def parts(settings: Settings) -> dict[str, list[Path]]:
    """The log files by part, such as "kafka": kafka.log, and kafka.out with what it printed."""
    files_by_part: dict[str, list[Path]] = {}
    for path in sorted([*settings.logs.glob("*.log"), *settings.logs.glob("*.out")]):
        files_by_part.setdefault(path.stem, []).append(path)
    return files_by_part


def lines(settings: Settings, part: str | None, count: int, *, follow: bool) -> Iterator[str]:
    """The last `count` lines of each log of a part, or of all, and then, with `follow`, new lines without end. Without `part`, each line begins with the name of its part.

    Raises StreamgaugeError if there is no such part, or none at all.
    """
    if not (existing := parts(settings)):
        msg = f"there are no logs in {settings.logs}; `streamgauge demo`, `up` and `run` write them"
        raise StreamgaugeError(msg)
    if part is not None:
        check_names("log of", [part], existing)
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
