"""Maintenance of Delta tables: compacts small files and deletes obsolete ones."""

import contextlib
import re
import time
from collections.abc import Iterator
from urllib.parse import unquote

from pyspark.sql import SparkSession

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.paths import StoragePath, StoredFile, files_below
from contract.text import size_text
from pipeline.catalog import known
from pipeline.ingest.location import DELETIONS
from pipeline.lake.tables import LakeTable
from pipeline.running.reset import locked_checkpoints
from pipeline.spark.errors import SparkFailure, spark_errors
from pipeline.spark.log import path_of
from pipeline.spark.session import session_config

DELTA_RETENTION_SECONDS = 7 * 86_400
ATTEMPTS = 4
_CONFLICT = re.compile(r"DELTA_CONCURRENT_\w+|Concurrent\w+Exception")
_LOGS = frozenset({"_delta_log"})
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def maintain_table(table: LakeTable, spark: SparkSession, settings: Settings, retain_seconds: float) -> str:
    """Maintains a Delta table, and returns a line on it. Files that no longer belong to it are kept for `retain_seconds`.

    Skips a table in an object store that a query is writing: when two Spark drivers commit at the same time, one commit can be lost.
    Raises StreamgaugeError on failure.
    """
    with contextlib.ExitStack() as held:
        if settings.is_lake_remote and (problem := _hold_writer(table, settings, held)):
            return f"{table.name} ({table.format}): skipped: {problem}"
        deletions = settings.lake / DELETIONS / table.path.name
        if deletions.exists():  # the same batches write it, so it has as many small files
            maintain_delta(LakeTable(f"{table.name}, deletions", deletions, "delta"), spark, retain_seconds)
        return maintain_delta(table, spark, retain_seconds)


def maintain_delta(table: LakeTable, spark: SparkSession, retain_seconds: float) -> str:
    """Runs OPTIMIZE, then VACUUM of files that have been obsolete for `retain_seconds`. Safe while streams write the table.

    Returns a line with the files before and after. Raises StreamgaugeError when Spark fails, or after repeated conflicts with other writers.
    """
    with spark_errors(f"table {table.name} in {table.path}: Spark failed"):
        current, on_disk = _sizes(table, _live_files(table, spark))
        _optimize(table, spark)
        live = _live_files(table, spark)
        # VACUUM adds two entries to the table's log even if it deletes nothing. It deletes only files older than the retention.
        if any(str(file.path) not in live and file.modified < time.time() - retain_seconds for file in _data_files(table.path)):
            with session_config(spark, {_CHECK: str(retain_seconds >= DELTA_RETENTION_SECONDS).lower()}):
                spark.sql(f"VACUUM {_sql_name(table)} RETAIN {retain_seconds / 3600:.6f} HOURS")
        current_now, on_disk_now = _sizes(table, live)
        return f"{table.name} ({table.format}): current {current} -> {current_now}; on disk {on_disk} -> {on_disk_now}"


def _hold_writer(table: LakeTable, settings: Settings, held: contextlib.ExitStack) -> str | None:
    """Prevents the query that writes the table from starting until `held` closes. Returns why that is not possible, or None."""
    writer = next((one for one in known(settings) if one.sink.delta_table(settings) == table.path), None)
    if writer is None:
        return "no query of this pipeline writes it, so its writers cannot be stopped meanwhile"
    try:
        held.enter_context(locked_checkpoints(writer, settings))
    except StreamgaugeError:
        return f"query {writer.name} is running, and a table in an object store is compacted only while its query is stopped"
    return None


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
    return {str(path_of(uri)) if uri.startswith("file:") else unquote(uri) for uri in files}


def _sizes(table: LakeTable, live: set[str]) -> tuple[str, str]:
    """The files of the current version, and all on disk: these, and those that earlier versions and readers may still need."""
    on_disk = {str(file.path): file.bytes for file in _data_files(table.path)}
    return _files(len(live), sum(on_disk.get(path, 0) for path in live)), _files(len(on_disk), sum(on_disk.values()))


def _data_files(folder: StoragePath) -> Iterator[StoredFile]:
    """The data files of all versions, without logs and checksums."""
    return (file for file in files_below(folder, leaving_out=_LOGS) if not file.path.name.startswith((".", "_")))


def _files(count: int, size_bytes: int) -> str:
    return f"{count} {'file' if count == 1 else 'files'}, {size_text(size_bytes)}"
