"""Maintenance of Delta tables: compacts small files and deletes obsolete ones."""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.sql import SparkSession

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.paths import StoragePath, StoredFile, files_below
from contract.text import size_text
from pipeline.catalog import known
from pipeline.ingest.location import DELETIONS
from pipeline.lake.tables import LakeTable
from pipeline.running.reset import checkpoints_held
from pipeline.spark.errors import SparkFailure, spark_errors
from pipeline.spark.log import path_of
from pipeline.spark.session import session_config

DELTA_RETENTION_SECONDS = 7 * 86_400
ATTEMPTS = 4
_CONFLICT = re.compile(r"DELTA_CONCURRENT_\w+|Concurrent\w+Exception")
_LOGS = frozenset({"_delta_log"})
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


class LeftAlone(StreamgaugeError):  # noqa: N818 - it says what is the case
    """The table must not change now."""


@dataclass(frozen=True)
class Weight:
    """The size of a table.

    live: files of the current version.
    on_disk: these, and files that earlier versions and readers may still need.
    """

    live_files: int
    live_bytes: int
    files_on_disk: int
    bytes_on_disk: int


@dataclass(frozen=True)
class Report:
    """The sizes of a table before and after maintenance."""

    table: LakeTable
    before: Weight
    after: Weight

    def __str__(self) -> str:
        live = (_files(one.live_files, one.live_bytes) for one in (self.before, self.after))
        on_disk = (_files(one.files_on_disk, one.bytes_on_disk) for one in (self.before, self.after))
        return f"{self.table.name} ({self.table.format}): current {' -> '.join(live)}; on disk {' -> '.join(on_disk)}"


def maintain(table: LakeTable, spark: SparkSession, settings: Settings, retain_seconds: float) -> Report:
    """Maintains a Delta table. Files that no longer belong to it are kept for `retain_seconds`.

    Raises StreamgaugeError on failure, and LeftAlone for a table in an object store that a query is writing: when two Spark drivers commit
    at the same time, one commit can be lost.
    """
    with contextlib.ExitStack() as held:
        if settings.is_lake_remote:
            _hold_writer(table, settings, held)
        deletions = settings.lake / DELETIONS / table.path.name
        if deletions.exists():  # the same batches write it, so it has as many small files
            maintain_delta(LakeTable(f"{table.name}, deletions", deletions, "delta"), spark, retain_seconds)
        return maintain_delta(table, spark, retain_seconds)


def maintain_delta(table: LakeTable, spark: SparkSession, retain_seconds: float) -> Report:
    """Runs OPTIMIZE, then VACUUM of files that have been obsolete for `retain_seconds`. Safe while streams write the table.

    Raises StreamgaugeError when Spark fails, or after repeated conflicts with other writers.
    """
    with spark_errors(f"table {table.name} in {table.path}: Spark failed"):
        before = _delta_weight(table, _live_files(table, spark))
        _optimize(table, spark)
        live = _live_files(table, spark)
        # VACUUM adds two entries to the table's log even if it deletes nothing. It deletes only files older than the retention.
        if any(str(file.path) not in live and file.modified < time.time() - retain_seconds for file in _data_files(table.path)):
            with session_config(spark, {_CHECK: str(retain_seconds >= DELTA_RETENTION_SECONDS).lower()}):
                spark.sql(f"VACUUM {_sql_name(table)} RETAIN {retain_seconds / 3600:.6f} HOURS")
        return Report(table, before, _delta_weight(table, live))


def _hold_writer(table: LakeTable, settings: Settings, held: contextlib.ExitStack) -> None:
    """Prevents the query that writes the table from starting until `held` closes. Raises LeftAlone when it is running or unknown."""
    writer = next((one for one in known(settings) if one.sink.delta_table(settings) == table.path), None)
    if writer is None:
        msg = "skipped: no query of this pipeline writes it, so its writers cannot be stopped meanwhile"
        raise LeftAlone(msg)
    try:
        held.enter_context(checkpoints_held(writer, settings))
    except StreamgaugeError as error:
        msg = f"skipped: query {writer.name} is running, and a table in an object store is compacted only while its query is stopped"
        raise LeftAlone(msg) from error


def _optimize(table: LakeTable, spark: SparkSession) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            spark.sql(f"OPTIMIZE {_sql_name(table)}")
        except SparkFailure as error:
            conflict = _CONFLICT.search(str(error))
            if conflict is None:
                raise
            if attempt == ATTEMPTS:
                msg = f"table {table.name}: another writer changed the same files during each of {ATTEMPTS} attempts ({conflict[0]}); nothing was changed: try again when that writer is done"
                raise StreamgaugeError(msg) from error
            time.sleep(attempt)
        else:
            return


def _sql_name(table: LakeTable) -> str:
    path = str(table.path).replace("`", "``")
    return f"delta.`{path}`"


def _live_files(table: LakeTable, spark: SparkSession) -> set[str]:
    """The files of a Delta table's current version."""
    files = spark.read.format("delta").load(str(table.path)).inputFiles()
    return {str(path_of({"path": uri})) if uri.startswith("file:") else unquote(uri) for uri in files}


def _delta_weight(table: LakeTable, live: set[str]) -> Weight:
    on_disk = {str(file.path): file.bytes for file in _data_files(table.path)}
    return Weight(len(live), sum(on_disk.get(path, 0) for path in live), len(on_disk), sum(on_disk.values()))


def _data_files(folder: StoragePath) -> Iterator[StoredFile]:
    """The data files of all versions, without logs and checksums."""
    return (file for file in files_below(folder, leaving_out=_LOGS) if not file.path.name.startswith((".", "_")))


def _files(count: int, size_bytes: int) -> str:
    return f"{count} {'file' if count == 1 else 'files'}, {size_text(size_bytes)}"
