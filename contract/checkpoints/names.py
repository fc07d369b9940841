"""Names and locations of checkpoints, and which process uses one.

A checkpoint is a folder `<query>-v<version>-<mode>` that Spark writes, in settings.checkpoints. Next to it are files with the same name and
the extensions `.topics` and `.parameters`, which belong to the checkpoint wherever it is used, and during a reset one with `.reset`. Notes for the processes
of one machine are in settings.checkpoint_notes, which is the same folder unless checkpoints are in an object store: `.lock`, held by the
process that runs the query; `.driver`, the process id of its Spark driver; `.journal`, the batches that it has planned.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, identity, names_in

REAL_TIME = "real-time"
CONSOLE = "-console"
"""The ending of a query's name when it prints its rows and writes none."""
_NAME = re.compile(r"(?P<query>.+)-v(?P<version>\d+)-(?P<mode>append|update|complete|" + REAL_TIME + r")(\..+)?")


@dataclass(frozen=True, order=True)
class CheckpointName:
    """The parts of a checkpoint folder's name."""

    query: str
    version: int
    mode: str

    @classmethod
    def of(cls, file_name: str) -> "CheckpointName | None":
        """Parses the name of a checkpoint folder or of one of its files. None for any other name."""
        match = _NAME.fullmatch(file_name)
        return cls(match["query"], int(match["version"]), match["mode"]) if match else None

    def __str__(self) -> str:
        return f"{self.query}-v{self.version}-{self.mode}"

    def place(self, settings: Settings) -> "CheckpointPlace":
        return CheckpointPlace(self, settings.checkpoints, settings.checkpoint_notes)

    def folder(self, settings: Settings) -> StoragePath:
        """The folder that Spark writes."""
        return self.place(settings).folder


@dataclass(frozen=True)
class CheckpointPlace:
    """The location of a checkpoint. parent: the folder of all checkpoints. notes: the folder with notes of this machine's processes."""

    name: CheckpointName
    parent: StoragePath
    notes: Path

    @property
    def folder(self) -> StoragePath:
        """The folder that Spark writes."""
        return self.parent / str(self.name)

    def sidecar(self, ending: str) -> StoragePath:
        """The file next to the checkpoint with that extension, e.g. ".topics". Query names, and so checkpoint names, may contain dots."""
        return self.parent / f"{self.name}{ending}"

    def note(self, ending: str) -> Path:
        """The note of this machine's processes with that extension, e.g. ".lock"."""
        return self.notes / f"{self.name}{ending}"

    def note_driver(self, pid: int) -> None:
        """Notes the Spark driver on this machine that uses the checkpoint from now on."""
        self.note(".driver").write_text(f"{pid} {identity(self.notes)}")

    @property
    def driver(self) -> psutil.Process | None:
        """The Spark driver on this machine that uses the checkpoint. None if there is none; a stale note of a killed driver, or of another home, is ignored."""
        note = self.note(".driver")
        try:
            noted_at = note.stat().st_mtime
            pid, _, folder = note.read_text().partition(" ")
            process = psutil.Process(int(pid))
            # The note may be a copy, as of a whole STREAMGAUGE_HOME, or the process id reused since.
            is_own = folder in {"", identity(self.notes)}  # earlier versions noted no folder
            is_driver = (
                is_own and "java" in process.name() and process.create_time() <= noted_at + 1 and process.status() != psutil.STATUS_ZOMBIE
            )
        except (OSError, ValueError, psutil.Error):
            return None
        return process if is_driver else None


def checkpoints(settings: Settings) -> list[CheckpointPlace]:
    """All checkpoints, sorted by name. Raises StoreUnavailable when they are in an object store that does not answer."""
    names = {name for entry in names_in(settings.checkpoints) if (name := CheckpointName.of(entry)) and str(name) == entry}
    return [name.place(settings) for name in sorted(names)]


def remains_of(query: str, settings: Settings) -> list[StoragePath]:
    """All checkpoints of the query, of any version and mode, and their files. Raises StoreUnavailable as `checkpoints` does."""
    folders: dict[str, StoragePath] = {str(folder): folder for folder in (settings.checkpoints, settings.checkpoint_notes)}
    return [
        folder / entry
        for folder in folders.values()
        for entry in names_in(folder)
        if (name := CheckpointName.of(entry)) and name.query == query
    ]


def others_of_query(name: CheckpointName, settings: Settings) -> list[CheckpointPlace]:
    """The same query's checkpoints with other versions and modes."""
    return [place for place in checkpoints(settings) if place.name.query == name.query and place.name != name]


def drivers(settings: Settings) -> dict[CheckpointName, psutil.Process]:
    """The checkpoints in use on this machine, each with its Spark driver."""
    names = {name for entry in names_in(settings.checkpoint_notes) if (name := CheckpointName.of(entry))}
    return {name: driver for name in sorted(names) if (driver := name.place(settings).driver) is not None}
