"""How checkpoints are named, where they are, and who uses one.

A checkpoint is a folder `<query>-v<version>-<mode>` that Spark writes, in settings.checkpoints. Beside it lie files of the same name with an
ending, which belong to it wherever it is used from: `.topics`. Files of that kind by which the processes of
one machine tell each other lie in settings.checkpoint_notes, which is the same folder unless checkpoints are in an object store: `.lock`, held by
the process that runs the query; `.driver`, the process id of its Spark driver; `.journal`, the batches that it has planned.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from contract.settings import Settings
from contract.storage.paths import StoragePath, names_in

_NAME = re.compile(r"(?P<query>.+)-v(?P<version>\d+)-(?P<mode>append|update|complete)(?P<ending>\..+)?")


@dataclass(frozen=True, order=True)
class CheckpointName:
    """What the name of a checkpoint's folder says."""

    query: str
    version: int
    mode: str

    @classmethod
    def of(cls, file_name: str) -> "CheckpointName | None":
        """What the name of a checkpoint's folder, or of a file that tells of it, says; None for any other name."""
        found = _NAME.fullmatch(file_name)
        return cls(found["query"], int(found["version"]), found["mode"]) if found else None

    def __str__(self) -> str:
        return f"{self.query}-v{self.version}-{self.mode}"

    def place(self, settings: Settings) -> "CheckpointPlace":
        """Where the checkpoint of that name is."""
        return CheckpointPlace(self, settings.checkpoints, settings.checkpoint_notes)

    def folder(self, settings: Settings) -> StoragePath:
        """Spark's part of it."""
        return self.place(settings).folder


@dataclass(frozen=True)
class CheckpointPlace:
    """Where a checkpoint is: in the folder `among` others, with notes of this machine's processes in the folder `notes`."""

    name: CheckpointName
    among: StoragePath
    notes: Path

    @property
    def folder(self) -> StoragePath:
        """What Spark writes."""
        return self.among / str(self.name)

    def beside(self, ending: str) -> StoragePath:
        """The file beside the checkpoint with that ending, e.g. ".topics". Names of queries, and so of checkpoints, may have dots."""
        return self.among / f"{self.name}{ending}"

    def note(self, ending: str) -> Path:
        """The file of this machine's processes with that ending, e.g. ".lock"."""
        return self.notes / f"{self.name}{ending}"

    @property
    def driver(self) -> psutil.Process | None:
        """The Spark driver on this machine that uses the checkpoint; None if none does. A leftover of one that was killed is none."""
        holder = self.note(".driver")
        try:
            noted_at = holder.stat().st_mtime
            process = psutil.Process(int(holder.read_text()))
            # Another process may have been given the same id since.
            is_it = "java" in process.name() and process.create_time() <= noted_at + 1 and process.status() != psutil.STATUS_ZOMBIE
        except (OSError, ValueError, psutil.Error):
            return None
        return process if is_it else None


def checkpoints(settings: Settings) -> list[CheckpointPlace]:
    """All that there are, by name. Raises StoreAway when they are in an object store that does not answer."""
    names = (name for entry in names_in(settings.checkpoints) if is_checkpoint(entry) and (name := CheckpointName.of(entry)))
    return [name.place(settings) for name in sorted(names)]


def is_checkpoint(file_name: str) -> bool:
    """Whether the name is that of a checkpoint's folder, and not of a file that tells of it."""
    found = _NAME.fullmatch(file_name)
    return found is not None and found["ending"] is None


def remains_of(query: str, settings: Settings) -> list[StoragePath]:
    """The checkpoints of the query, of every version and mode, and all files that tell of them. Raises StoreAway as `checkpoints` does."""
    folders: dict[str, StoragePath] = {str(folder): folder for folder in (settings.checkpoints, settings.checkpoint_notes)}
    return [
        folder / entry
        for folder in folders.values()
        for entry in names_in(folder)
        if (name := CheckpointName.of(entry)) and name.query == query
    ]


def others_of_query(own: CheckpointName, settings: Settings) -> list[CheckpointPlace]:
    """The checkpoints that the same query has in other versions and modes."""
    return [place for place in checkpoints(settings) if place.name.query == own.query and place.name != own]


def drivers(settings: Settings) -> dict[CheckpointName, psutil.Process]:
    """The checkpoints that are in use on this machine, each with the Spark driver that uses it."""
    names = {name for entry in names_in(settings.checkpoint_notes) if (name := CheckpointName.of(entry))}
    return {name: driver for name in sorted(names) if (driver := name.place(settings).driver) is not None}
