"""The interface of sinks: write rows, and optionally reset and maintain them."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath
from infrastructure.storage.removal import bytes_on_disk, remove
from infrastructure.text import size_text


@dataclass(frozen=True)
class Deletion:
    """One thing that a reset deletes. description: one line."""

    description: str
    do: Callable[[], object]


def name_in_sql(below_lake: Sequence[str]) -> str:
    """The SQL name of a table, from the folder names below the lake: nest/cameras is nest_cameras."""
    return re.sub(r"[^A-Za-z0-9_]", "_", "_".join(below_lake))


def deletion_of_table(folder: StoragePath) -> list[Deletion]:
    """The deletion of the table in that folder; empty if it does not exist. Raises StreamgaugeError for a symbolic link."""
    if isinstance(folder, Path) and folder.is_symlink():
        msg = f"{folder} is a link to {folder.readlink()}; a reset does not follow links: delete that folder by hand, then reset"
        raise StreamgaugeError(msg)
    if not folder.exists():
        return []
    return [Deletion(f"{'file' if folder.is_file() else 'table'} {folder}, {size_text(bytes_on_disk(folder))}", partial(remove, folder))]


def out_of_step(query: str, place: str, in_sink: int, in_checkpoint: int) -> str:
    """The message for a sink whose last batch is `in_sink`, while batch `in_checkpoint` is the last one in the checkpoint of `query`; -1 for none."""
    sink_ends, checkpoint_ends = (f"ends with batch {number}" if number >= 0 else "has no batch" for number in (in_sink, in_checkpoint))
    return (
        f"{place} {sink_ends} and the checkpoint of {query} {checkpoint_ends}, so rows would be lost or doubled: one of them was restored, deleted "
        f"or created again. Restore both from copies of the same time, or write both again from the records that the source still has "
        f"(`streamgauge reset {query}`)"
    )


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

    def last_batch(self, spark: SparkSession, settings: Settings, query_id: str | None) -> int | None:  # noqa: ARG002 - as below
        """The number of the last batch in the sink, which skips batches that it holds already; -1 before the first.

        None for a sink to which a new or restored checkpoint may write any batch again. query_id: Spark's id of the query, None before its first
        start.
        """
        return None

    def deletions(self, settings: Settings) -> list[Deletion]:  # noqa: ARG002 - of a sink that keeps nothing
        """The deletions of a reset; empty if there is nothing to delete. Raises StreamgaugeError when the sink cannot be reached."""
        return []

    def delta_table(self, settings: Settings) -> StoragePath | None:  # noqa: ARG002 - of a sink without one
        """The Delta table of this sink, which `maintain` compacts; None if there is none."""
        return None
