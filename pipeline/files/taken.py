"""Which files a query has taken: what Spark's file source remembers in the query's checkpoint.

It numbers what it finds: each time that it looks and there are new files, they are one entry, and a micro-batch takes so many entries.
`sources/0/N` lists the files of entry N; every tenth, `N.compact`, lists those of all entries up to N.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from streamgauge.errors import StreamgaugeError

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class TakenFile:
    """A file that a query has taken, or is about to. entry: its number. modified_ms: when it had last been changed then, since 1970."""

    path: str
    modified_ms: int
    entry: int


def taken_files(checkpoint: Path) -> list[TakenFile]:
    """All files that the query has found, in order; also while it runs.

    Raises StreamgaugeError for a file of the checkpoint that is not as Spark writes it.
    """
    folder = checkpoint / "sources" / "0"
    for _ in range(_ATTEMPTS - 1):
        try:
            return _read(folder)
        except FileNotFoundError:  # compacted meanwhile
            continue
    return _read(folder)


def _read(folder: Path) -> list[TakenFile]:
    names = [path.name for path in folder.iterdir() if not path.name.startswith(".")] if folder.exists() else []
    compact = max((int(name.removesuffix(".compact")) for name in names if name.endswith(".compact")), default=-1)
    later = sorted(int(name) for name in names if name.isdigit() and int(name) > compact)
    logs = [*([f"{compact}.compact"] if compact >= 0 else []), *map(str, later)]
    return [file for name in logs for file in _parsed((folder / name).read_text().splitlines()[1:], folder / name)]


def _parsed(lines: Iterable[str], path: Path) -> list[TakenFile]:
    try:
        entries = [json.loads(line) for line in lines if line]
        return [TakenFile(_path(entry["path"]), entry["timestamp"], entry["batchId"]) for entry in entries]
    except (ValueError, KeyError) as error:
        msg = f"{path} is not as Spark writes it ({error}); restore the checkpoint, or delete {path.parents[2]} to count anew"
        raise StreamgaugeError(msg) from error


def _path(uri: str) -> str:
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")
