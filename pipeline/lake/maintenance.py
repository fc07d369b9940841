"""Maintenance of Delta tables: compacts small files and deletes obsolete ones."""

import contextlib
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contract.create_topics import longest_kept_ms
from infrastructure.errors import StreamgaugeError
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.settings import Settings
from infrastructure.text import size_text
from pipeline.catalog import all_queries
from pipeline.ingest.location import DELETIONS, SCHEMA_ENDING, TableSchema
from pipeline.lake.tables import LakeTable
from pipeline.running.reset import locked_checkpoints
from pipeline.sinks import conflicts
from pipeline.sinks.conflicts import conflict_in, retried
from pipeline.spark.errors import SparkFailure, spark_errors
from pipeline.spark.session import session_config

if HAS_DELTA:
    from delta.tables import DeltaTable

DELTA_RETENTION_SECONDS = 7 * 86_400
SHORT_SECONDS = 3600
_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
# Otherwise VACUUM adds two entries to the table's log even if it deletes nothing.
_UNLOGGED = {"spark.databricks.delta.vacuum.logging.enabled": "false"}


def maintain_table(table: LakeTable, spark: SparkSession, settings: Settings, retain_seconds: float) -> str:
    """Maintains a Delta table, and returns a line on it. Files that no longer belong to it are kept for `retain_seconds`.

    Only deletes files of a table in an object store that a query is writing: there, one of two commits at the same time can be lost, and deleting
    commits nothing. Skips such a table if `retain_seconds` is below SHORT_SECONDS: files of a batch that is not committed belong to no version.
    Raises StreamgaugeError on failure.
    """
    with contextlib.ExitStack() as locks:
        why_not_compacted = None
        if settings.is_lake_remote or retain_seconds < SHORT_SECONDS:
            try:
                _lock_writers(table, locks, settings)
            except StreamgaugeError as error:
                if retain_seconds < SHORT_SECONDS:
                    return f"{table.name} ({table.format}): skipped: {error}"
                why_not_compacted = error
        deletions = settings.lake / DELETIONS / table.path.name
        if deletions.exists():  # the same batches write it, so it has as many small files
            of_deletions = LakeTable(f"{table.name}, deletions", deletions, "delta")
            if why_not_compacted is None:
                _forget_old(of_deletions, table, spark, settings)
            maintain_delta(of_deletions, spark, retain_seconds, compact=why_not_compacted is None)
        report = maintain_delta(table, spark, retain_seconds, compact=why_not_compacted is None)
        return report if why_not_compacted is None else f"{report}; only unused files were deleted: {why_not_compacted}"


def _lock_writers(table: LakeTable, locks: contextlib.ExitStack, settings: Settings) -> None:
    """Keeps the queries that write the table from starting. Raises StreamgaugeError when one runs, and when writers of an object store are not known."""
    writers = [query for query in all_queries(settings) if query.sink.delta_table(settings) == table.path]
    if not writers and settings.is_lake_remote:
        msg = "no query of this pipeline writes the table, so its writers cannot be stopped meanwhile"
        raise StreamgaugeError(msg)
    for writer in writers:
        locks.enter_context(locked_checkpoints(writer, settings))


def maintain_delta(table: LakeTable, spark: SparkSession, retain_seconds: float, *, compact: bool = True) -> str:
    """Runs OPTIMIZE if `compact`, then VACUUM of files that have been obsolete for `retain_seconds`. Safe while streams write the table.

    Returns a line with the files of the current version before and after. Raises StreamgaugeError when Spark fails, or after repeated conflicts
    with other writers.
    """
    with spark_errors(f"table {table.name} in {table.path}: Spark failed"):
        before = _current_files(table, spark)
        if compact:
            _optimize(table, spark)
        with session_config(spark, {_CHECK: str(retain_seconds >= DELTA_RETENTION_SECONDS).lower(), **_UNLOGGED}):
            spark.sql(f"VACUUM {_sql_name(table)} RETAIN {retain_seconds / 3600:.6f} HOURS")
        return f"{table.name} ({table.format}): current files {before} -> {_current_files(table, spark)}"


def _forget_old(deletions: LakeTable, table: LakeTable, spark: SparkSession, settings: Settings) -> None:
    """Forgets deletions that are older than any record of the topic: no older record can come back."""
    schema = TableSchema.read(settings.lake / f"{table.path.name}{SCHEMA_ENDING}")
    kept_ms = None
    with contextlib.suppress(StreamgaugeError):  # without Kafka, all deletions stay
        kept_ms = longest_kept_ms(settings.kafka, schema.topic) if schema else None
    if kept_ms is not None:
        is_old = F.unix_millis("kafka_timestamp") < round(time.time() * 1000) - kept_ms
        with spark_errors(f"table {deletions.name} in {deletions.path}: Spark failed"):
            retried(lambda: DeltaTable.forPath(spark, str(deletions.path)).delete(is_old))


def _optimize(table: LakeTable, spark: SparkSession) -> None:
    try:
        retried(lambda: spark.sql(f"OPTIMIZE {_sql_name(table)}"))
    except SparkFailure as error:
        if (conflict := conflict_in(error)) is None:
            raise
        msg = f"table {table.name}: another writer changed the same files during each of {conflicts.ATTEMPTS} attempts ({conflict}); nothing was changed: try again when that writer is done"
        raise StreamgaugeError(msg) from error


def _sql_name(table: LakeTable) -> str:
    path = str(table.path).replace("`", "``")
    return f"delta.`{path}`"


def _current_files(table: LakeTable, spark: SparkSession) -> str:
    """How many files the table's current version has, and their size."""
    detail = spark.sql(f"DESCRIBE DETAIL {_sql_name(table)}").collect()[0]
    return f"{detail.numFiles}, {size_text(detail.sizeInBytes)}"
