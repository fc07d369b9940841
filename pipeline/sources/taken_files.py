"""The files that a query has read, from the log that Spark's file source keeps in the query's checkpoint.

The source numbers its entries: each listing that finds new files adds one entry with all of them. A micro-batch reads whole entries.
"""

from dataclasses import dataclass

from contract.storage.paths import StoragePath
from pipeline.spark.log import live_entries, path_of

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class TakenFile:
    """A file that a query has read or is about to read.

    entry: the number of its entry.
    modified_ms: its modification time when it was found, ms since 1970.
    """

    path: str
    modified_ms: int
    entry: int


def taken_files(checkpoint: StoragePath) -> list[TakenFile]:
    """All files that the query has found, in order. Safe while the query runs.

    Raises StreamgaugeError for a damaged log file.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return _read(checkpoint)
        except FileNotFoundError:  # Spark compacted the log
            continue
    return _read(checkpoint)


def _read(checkpoint: StoragePath) -> list[TakenFile]:
    return [TakenFile(str(path_of(entry)), entry["timestamp"], entry["batchId"]) for entry in live_entries(checkpoint / "sources" / "0")]
