"""Verifies sinks whose rows name the record they come from: archives and dead letters."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import zip_longest
from pathlib import Path

import orjson
import pyarrow.parquet
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from pipeline.checkpoint.contents import Offsets, Partition
from pipeline.sinks.archives import Archive, DeltaArchive
from pipeline.sinks.topics import DeadLetterTopic
from pipeline.sources.kafka import ORIGIN, first_and_end_offsets, records_between, source_partitions
from pipeline.spark.errors import SparkFailure, first_line
from pipeline.spark.log import live_entries, path_of
from pipeline.verification.check import Check
from pipeline.verification.origins import CONTENT, compare, letters_by_origin, rows_by_origin
from pipeline.verification.outcome import MAX_DIFFERENCES, Difference, Outcome, first_of
from pipeline.verification.prefix import Prefix

_OF_FILES = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER")
"""Signs of a file that could not be read."""
_MAX_ROWS = 5000
"""How many rows of the records that differ are read again."""
Expected = Callable[[Offsets, Offsets], DataFrame]
"""The expected rows of the records between two offsets of each partition, by origin."""


def verify_archive(check: Check, sink: Archive) -> Outcome:
    """Verifies an archive. Missing and damaged Parquet files are reported as faults; the remaining files are compared."""
    prefix, folder, origin_prefix = check.committed(), str(sink.folder(check.settings)), sink.origin_prefix

    def expected(starts: Offsets, ends: Offsets) -> DataFrame:
        return rows_by_origin(check.result(starts, ends), origin_prefix)

    schema = check.result(prefix.starts, prefix.ends).schema
    nothing = check.spark.createDataFrame([], schema)
    if isinstance(sink, DeltaArchive):
        # A column that no batch has written yet is null.
        table = nothing.unionByName(check.spark.read.format("delta").load(folder), allowMissingColumns=True)
        return _compared(check, prefix, expected, rows_by_origin(table, origin_prefix))
    files = [path_of(entry["path"]) for entry in live_entries(Path(folder) / "_spark_metadata")]
    if not files:
        return _compared(check, prefix, expected, rows_by_origin(nothing, origin_prefix))
    faults = _faults("gone", [path for path in files if not path.exists()], folder)
    # By Spark's log, each row counts once, without those of unfinished batches. Columns that older files lack are null.
    reader = check.spark.read.schema(schema).option("ignoreMissingFiles", "true")
    try:
        return _compared(check, prefix, expected, rows_by_origin(reader.parquet(folder), origin_prefix), faults)
    except SparkFailure as error:
        if not any(sign in str(error) for sign in _OF_FILES):
            raise
        damaged = [path for path in files if path.exists() and not _is_parquet(path)]
        faults += _faults("not readable", damaged, folder) or [first_line(error)]
        reader = reader.option("ignoreCorruptFiles", "true")
        return _compared(check, prefix, expected, rows_by_origin(reader.parquet(folder), origin_prefix), faults)


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
    differences = _differences(wrong, expected, found)
    faults = [*faults, *check.source.unknown_files(found)]
    return check.found(prefix, rows=counts, differences=differences[:MAX_DIFFERENCES], faults=faults, notes=notes)


def _differences(origins: Sequence[Row], expected: Expected, found: DataFrame) -> list[Difference]:
    """Reads the rows of a few records again, all at once, and returns how they differ."""
    if not origins:
        return []
    records = [((origin.topic, origin.partition), origin.offset) for origin in origins]
    should_be = _contents(reduce(DataFrame.unionAll, (expected({which: offset}, {which: offset + 1}) for which, offset in records)))
    is_of_one = (
        (F.col("topic") == topic) & (F.col("partition") == number) & (F.col("offset") == offset) for (topic, number), offset in records
    )
    are = _contents(found.where(reduce(Column.__or__, is_of_one)))
    return [difference for record in records for difference in _differences_of(*record, should_be[record], are[record])]


def _differences_of(which: Partition, offset: int, should_be: Counter[str], are: Counter[str]) -> list[Difference]:
    lacking, more = ([orjson.loads(row) for row in (one - other).elements()] for one, other in ((should_be, are), (are, should_be)))
    where = f"{which[0]}-{which[1]} offset {offset}"
    return [
        Difference("missing" if other is None else "extra" if one is None else "different", where, one, other)
        for one, other in zip_longest(lacking, more)
    ]


def _contents(rows: DataFrame) -> defaultdict[tuple[Partition, int], Counter[str]]:
    """The rows of each record."""
    found: defaultdict[tuple[Partition, int], Counter[str]] = defaultdict(Counter)
    for row in rows.select(*ORIGIN, CONTENT).limit(_MAX_ROWS).collect():
        found[(row.topic, row.partition), row.offset][row[CONTENT]] += 1
    return found


def _faults(what: str, paths: Sequence[Path], folder: str) -> list[str]:
    """One line that names the first paths and says that they are `what`. Empty without paths."""
    shown = [path.relative_to(folder) if path.is_relative_to(folder) else path for path in paths]
    return [f"files of the table that are {what}, {len(paths)}: {first_of(shown)}"] if paths else []


def _is_parquet(path: Path) -> bool:
    try:
        pyarrow.parquet.read_table(path, page_checksum_verification=True)
    except Exception:
        return False
    return True
