"""The interface of sinks: write rows, and optionally reset and maintain them. pipeline.verification knows how to verify each."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.paths import StoragePath
from contract.storage.removal import bytes_on_disk, remove
from contract.text import size_text


@dataclass(frozen=True)
class Deletion:
    """One thing that a reset deletes. what: a line that describes it."""

    what: str
    do: Callable[[], object]


def deletion_of_table(folder: StoragePath) -> list[Deletion]:
    """The deletion of the table in that folder; empty if it does not exist. Raises StreamgaugeError for a symbolic link."""
    if isinstance(folder, Path) and folder.is_symlink():
        msg = f"{folder} is a link to {folder.readlink()}; a reset does not follow links: delete that folder by hand, then reset"
        raise StreamgaugeError(msg)
    if not folder.exists():
        return []
    return [Deletion(f"{'file' if folder.is_file() else 'table'} {folder}, {size_text(bytes_on_disk(folder))}", partial(remove, folder))]


class Sink(ABC):
    """Where result rows go. is_kept: whether a reset leaves them there, for the next run to write them again with the same keys."""

    is_kept: ClassVar[bool] = False

    @property
    @abstractmethod
    def place(self) -> str:
        """The name in reports: `topic nest-camera-stats`, `lake/nest/cameras`."""

    @abstractmethod
    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of `rows` for the runner to start, without output mode, trigger and checkpoint.

        Raises TopicMissing when its topic does not exist.
        """

    def deletions(self, settings: Settings) -> list[Deletion]:  # noqa: ARG002 - of a sink that keeps nothing
        """What a reset deletes; empty if there is nothing to delete. Raises StreamgaugeError when the sink cannot be reached."""
        return []

    def delta_table(self, settings: Settings) -> StoragePath | None:  # noqa: ARG002 - of a sink without one
        """The Delta table of this sink, which `maintain` compacts; None if there is none."""
        return None
