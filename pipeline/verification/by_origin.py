"""Verifies sinks whose rows name the record they come from: archives and dead letters."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import orjson
import pyarrow.parquet
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.checkpoint.contents import Offsets
from pipeline.sinks.archives import Archive, DeltaArchive
from pipeline.sinks.topics import DeadLetterTopic
from pipeline.sources.kafka import first_and_end_offsets, records_between, source_partitions
from pipeline.spark.errors import SparkFailure
from pipeline.spark.log import live_entries, path_of
from pipeline.verification.check import Check
from pipeline.verification.origins import CONTENT, compare, letters_by_origin, rows_by_origin
from pipeline.verification.outcome import MAX_DIFFERENCES, Difference, Outcome, first_of
from pipeline.verification.prefix import Prefix

Expected = Callable[[Offsets, Offsets], DataFrame]
"""The expected rows of the records between two offsets of each partition, by origin."""


def verify_archive(check: Check, sink: Archive) -> Outcome:
    """Verifies an archive. Missing and damaged Parquet files are reported as faults; the remaining files are compared."""
    prefix, folder, origin_prefix = check.committed(), str(sink.folder(check.settings)), sink.origin_prefix

    def expected(starts: Offsets, ends: Offsets) -> DataFrame:
        return rows_by_origin(check.result(starts, ends), origin_prefix)

    if isinstance(sink, DeltaArchive):
        return _compared(check, prefix, expected, rows_by_origin(check.spark.read.format("delta").load(folder), origin_prefix))
    files = _ParquetFiles(check.spark, Path(folder), check.result(prefix.starts, prefix.ends).schema)
    faults = files.faults("gone", [path for path in files.files() if not path.exists()])
    try:
        return _compared(check, prefix, expected, rows_by_origin(files.rows(), origin_prefix), faults)
    except SparkFailure as error:
        if not _is_of_files(str(error)):
            raise
        faults += files.faults("not readable", files.unreadable(str(error)))
        return _compared(check, prefix, expected, rows_by_origin(files.rows(but_unreadable=True), origin_prefix), faults)


def verify_letters(check: Check, sink: DeadLetterTopic) -> Outcome:
    """Verifies dead letters. Records whose letters may have expired are not checkable."""
    prefix, topic = check.committed(), sink.topic.name

    def expected(starts: Offsets, ends: Offsets) -> DataFrame:
        return letters_by_origin(check.result(starts, ends), sink.reader)

    bounds = first_and_end_offsets(check.settings, source_partitions(check.settings, topic))
    kept, ends = ({which: bound[edge] for which, bound in bounds.items()} for edge in (0, 1))
    sources = sorted({of for of, _ in prefix.ends})
    letters = records_between(check.spark, check.settings, kept, ends, with_headers=True)
    # A batch that ran twice wrote its letters twice. Two letters of one record that differ both remain.
    found = letters_by_origin(letters, sink.reader).where(F.col("topic").isin(sources)).distinct()
    if not any(kept.values()):
        return _compared(check, prefix, expected, found)
    note = f"topic {topic} has lost its oldest letters: those of records before the oldest one left are not checkable"
    kept_from = found.groupBy("topic", "partition").agg(F.min("offset").alias("kept_from"))
    return _compared(check, prefix, expected, found, kept_from=kept_from, notes=[note])


def _compared(
    check: Check,
    prefix: Prefix,
    expected: Expected,
    found: DataFrame,
    faults: Sequence[str] = (),
    *,
    kept_from: DataFrame | None = None,
    notes: Sequence[str] = (),
) -> Outcome:
    counts, wrong = compare(expected(prefix.starts, prefix.ends), found, prefix, kept_from)
    differences = [difference for origin in wrong for difference in _differences(origin, expected, found)]
    faults = [*faults, *check.source.unknown_files(found)]
    return check.found(prefix, rows=counts, differences=differences[:MAX_DIFFERENCES], faults=faults, notes=notes)


def _differences(origin: Row, expected: Expected, found: DataFrame) -> list[Difference]:
    """Reads the rows of one record again and returns how they differ."""
    topic, number, offset = origin.topic, origin.partition, origin.offset
    should_be = _contents(expected({(topic, number): offset}, {(topic, number): offset + 1}))
    are = _contents(found.where((F.col("topic") == topic) & (F.col("partition") == number) & (F.col("offset") == offset)))
    lacking, more = ([orjson.loads(row) for row in (one - other).elements()] for one, other in ((should_be, are), (are, should_be)))
    where = f"{topic}-{number} offset {offset}"
    return [
        Difference("missing" if other is None else "extra" if one is None else "different", where, one, other)
        for one, other in zip_longest(lacking, more)
    ]


def _contents(rows: DataFrame) -> Counter[str]:
    return Counter(row[CONTENT] for row in rows.select(CONTENT).limit(1000).collect())


@dataclass(frozen=True)
class _ParquetFiles:
    """A table of Parquet files in `folder`, read with the current columns of its rows. Columns that older files lack are null.

    Each row counts once, according to Spark's metadata log, without rows of unfinished batches.
    """

    spark: SparkSession
    folder: Path
    schema: T.StructType

    def rows(self, *, but_unreadable: bool = False) -> DataFrame:
        """The rows of the files that still exist. but_unreadable: also skips files that are not valid Parquet."""
        if not (self.folder / "_spark_metadata").exists():
            return self.spark.createDataFrame([], self.schema)
        options = {"ignoreMissingFiles": "true", "ignoreCorruptFiles": str(but_unreadable).lower()}
        return self.spark.read.schema(self.schema).options(**options).parquet(str(self.folder))

    def files(self) -> list[Path]:
        """The files in the log: those of its newest summary, written every ten batches, and of the batches since."""
        return [path_of(entry["path"]) for entry in live_entries(self.folder / "_spark_metadata")]

    def unreadable(self, failure: str) -> list[Path]:
        """Existing files that are not valid Parquet or were replaced. failure: Spark's error message, which may name one."""
        broken = [path for path in self.files() if path.exists() and not _is_parquet(path)]
        named = [path_of(name) for name in re.findall(r"file:/+[^\s]+\.parquet", failure)[:1]]
        return broken + [path for path in named if path not in broken]

    def faults(self, what: str, paths: Sequence[Path]) -> list[str]:
        """One line that names the first paths and says that they are `what`. Empty without paths."""
        shown = [path.relative_to(self.folder) if path.is_relative_to(self.folder) else path for path in paths]
        return [f"files of the table that are {what}, {len(paths)}: {first_of(shown)}"] if paths else []


def _is_of_files(failure: str) -> bool:
    """Whether Spark failed because a file could not be read."""
    return any(sign in failure for sign in ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER"))


def _is_parquet(path: Path) -> bool:
    try:
        pyarrow.parquet.read_table(path)
    except Exception:
        return False
    return True
