"""Which files a query has taken: what Spark's file source remembers in the query's checkpoint.

It numbers what it finds: each time that it looks and there are new files, they are one entry, and a micro-batch takes so many entries.
"""

from dataclasses import dataclass

from contract.storage.paths import StoragePath
from pipeline.spark.log import live_entries, path_of

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class TakenFile:
    """A file that a query has taken, or is about to. entry: its number. modified_ms: when it had last been changed then, since 1970."""

    path: str
    modified_ms: int
    entry: int


def taken_files(checkpoint: StoragePath) -> list[TakenFile]:
    """All files that the query has found, in order; also while it runs.

    Raises StreamgaugeError for a file of the checkpoint that is not as Spark writes it.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return _read(checkpoint)
        except FileNotFoundError:  # compacted meanwhile
            continue
    return _read(checkpoint)


def _read(checkpoint: StoragePath) -> list[TakenFile]:
    return [TakenFile(str(path_of(entry)), entry["timestamp"], entry["batchId"]) for entry in live_entries(checkpoint / "sources" / "0")]
