"""How checkpoints are named and who uses one, by what lies in STREAMGAUGE_HOME alone.

A checkpoint is a folder `<query>-v<version>-<mode>`. Beside it lie files of the same name with an ending: `.lock`, held by the process
that runs the query; `.driver`, the process id of its Spark driver; and whatever else Spark is not to know of.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from streamgauge.settings import Settings

_NAME = re.compile(r"(?P<query>.+)-v(?P<version>\d+)-(?P<mode>append|update|complete)(?P<ending>\..+)?")


@dataclass(frozen=True, order=True)
class CheckpointName:
    """What the name of a checkpoint's folder says."""

    query: str
    version: int
    mode: str

    @classmethod
    def of(cls, path: Path) -> "CheckpointName | None":
        """What the name of a checkpoint's folder, or of a file beside it, says; None for any other name."""
        found = _NAME.fullmatch(path.name)
        return cls(found["query"], int(found["version"]), found["mode"]) if found else None

    def __str__(self) -> str:
        return f"{self.query}-v{self.version}-{self.mode}"

    def folder(self, settings: Settings) -> Path:
        """Where the checkpoint of that name is."""
        return settings.checkpoints.absolute() / str(self)


def checkpoints(settings: Settings) -> list[Path]:
    """The folders of all checkpoints."""
    return sorted(path for path in _entries(settings) if path.is_dir() and is_checkpoint(path))


def is_checkpoint(path: Path) -> bool:
    """Whether the name is that of a checkpoint's folder, and not of a file beside it."""
    found = _NAME.fullmatch(path.name)
    return found is not None and found["ending"] is None


def beside(checkpoint: Path, ending: str) -> Path:
    """The file beside the checkpoint with that ending, e.g. ".lock". Names of queries, and so of checkpoints, may have dots."""
    return checkpoint.with_name(checkpoint.name + ending)


def files_of(query: str, settings: Settings) -> list[Path]:
    """The checkpoints of the query, of every version and mode, and all that lies beside them."""
    return sorted(path for path in _entries(settings) if (name := CheckpointName.of(path)) and name.query == query)


def others_of_query(own: Path) -> list[Path]:
    """The checkpoints beside `own` that the same query has in other versions and modes."""
    query = own.name if (name := CheckpointName.of(own)) is None else name.query
    siblings = own.parent.iterdir() if own.parent.is_dir() else ()
    return sorted(path for path in siblings if path != own and path.is_dir() and (name := CheckpointName.of(path)) and name.query == query)


def driver_of(checkpoint: Path) -> psutil.Process | None:
    """The Spark driver that uses the checkpoint; None if none does. A leftover of one that was killed is none."""
    holder = beside(checkpoint, ".driver")
    try:
        noted_at = holder.stat().st_mtime
        process = psutil.Process(int(holder.read_text()))
        # Another process may have been given the same id since.
        is_it = "java" in process.name() and process.create_time() <= noted_at + 1 and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, ValueError, psutil.Error):
        return None
    return process if is_it else None


def drivers(settings: Settings) -> dict[Path, psutil.Process]:
    """The checkpoints that are in use, each with the Spark driver that uses it."""
    return {path: driver for path in checkpoints(settings) if (driver := driver_of(path)) is not None}


def _entries(settings: Settings) -> list[Path]:
    try:
        return list(settings.checkpoints.absolute().iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
