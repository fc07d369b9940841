"""Verifies sinks whose rows name the record they come from: archives and dead letters."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipeline.checkpoint.contents import Offsets, Partition
from pipeline.sources.kafka import first_and_end_offsets, records_between, source_partitions
from pipeline.spark.errors import SparkFailure
from pipeline.verification.archive import Archive, is_of_files
from pipeline.verification.check import Check
from pipeline.verification.origins import CONTENT, ORIGIN, Origin, OriginComparison, compare, letters_by_origin, rows_by_origin
from pipeline.verification.outcome import MOST_DIFFERENCES, Difference, Kind, Outcome
from pipeline.verification.prefix import Prefix

Expected = Callable[[Offsets, Offsets], DataFrame]
"""The expected rows of the records between two offsets of each partition, by origin."""


def verify_parquet(check: Check, folder: Path, origin_prefix: str) -> Outcome:
    """Verifies a Parquet archive. Missing and damaged files are reported as faults; the remaining files are compared."""
    prefix, expected = check.committed(), _expected_rows(check, origin_prefix)
    archive = Archive(check.spark, folder, check.result(prefix.starts, prefix.ends).schema)
    faults = archive.faults("gone", archive.gone())
    found = rows_by_origin(archive.rows(), origin_prefix)
    try:
        comparison = compare(expected(prefix.starts, prefix.ends), found, prefix)
    except SparkFailure as error:
        if not is_of_files(str(error)):
            raise
        faults += archive.faults("not readable", archive.unreadable(str(error)))
        found = rows_by_origin(archive.rows(but_unreadable=True), origin_prefix)
        comparison = compare(expected(prefix.starts, prefix.ends), found, prefix)
    return _outcome(check, prefix, comparison, expected, found, faults)


def verify_delta(check: Check, path: str, origin_prefix: str) -> Outcome:
    """Verifies a Delta archive."""
    prefix, expected = check.committed(), _expected_rows(check, origin_prefix)
    found = rows_by_origin(check.spark.read.format("delta").load(path), origin_prefix)
    comparison = compare(expected(prefix.starts, prefix.ends), found, prefix)
    return _outcome(check, prefix, comparison, expected, found, [])


def verify_letters(check: Check, topic: str, reader: str) -> Outcome:
    """Verifies the dead letters in `topic`. Records whose letters may have expired are not checkable."""
    prefix = check.committed()

    def expected(starts: Offsets, ends: Offsets) -> DataFrame:
        return letters_by_origin(check.result(starts, ends), reader)

    bounds = first_and_end_offsets(check.settings, source_partitions(check.settings, topic))
    kept, ends = ({which: bound[edge] for which, bound in bounds.items()} for edge in (0, 1))
    sources = sorted({of for of, _ in prefix.ends})
    letters = records_between(check.spark, check.settings, kept, ends, with_headers=True)
    # A batch that ran twice wrote its letters twice. Two letters of one record that differ both remain.
    found = letters_by_origin(letters, reader).where(F.col("topic").isin(sources)).distinct()
    kept_from: dict[Partition, int] | None = None
    if any(kept.values()):
        oldest = found.groupBy("topic", "partition").agg(F.min("offset").alias("offset")).collect()
        kept_from = {(row.topic, row.partition): row.offset for row in oldest}
        note = f"topic {topic} has lost its oldest letters: those of records before the oldest one left are not checkable"
        check = replace(check, outcome=replace(check.outcome, notes=[*check.outcome.notes, note]))
    comparison = compare(expected(prefix.starts, prefix.ends), found, prefix, kept_from)
    return _outcome(check, prefix, comparison, expected, found, [])


def _expected_rows(check: Check, origin_prefix: str) -> Expected:
    return lambda starts, ends: rows_by_origin(check.result(starts, ends), origin_prefix)


def _outcome(
    check: Check, prefix: Prefix, comparison: OriginComparison, expected: Expected, found: DataFrame, faults: list[str]
) -> Outcome:
    differences = [difference for origin in comparison.where for difference in _differences(origin, expected, found)]
    faults = [*faults, *check.taken.strangers(found)]
    return check.found(prefix, rows=comparison.counts, differences=differences[:MOST_DIFFERENCES], faults=faults)


def _differences(origin: Origin, expected: Expected, found: DataFrame) -> list[Difference]:
    """Reads the rows of one record again and returns how they differ."""
    which = (origin.topic, origin.partition)
    should_be = _contents(expected({which: origin.offset}, {which: origin.offset + 1}))
    are = _contents(found.where(_is_of(origin)))
    lacking, more = _without(should_be, are), _without(are, should_be)
    where = f"{origin.topic}-{origin.partition} offset {origin.offset}"
    differences = []
    for index in range(max(len(lacking), len(more))):
        one, other = (rows[index] if index < len(rows) else None for rows in (lacking, more))
        kind: Kind = "missing" if other is None else "extra" if one is None else "different"
        differences.append(Difference(kind, where, one, other))
    return differences


def _contents(rows: DataFrame) -> list[str]:
    return [row[CONTENT] for row in rows.select(CONTENT).limit(1000).collect()]


def _without(rows: list[str], others: list[str]) -> list[Any]:
    left = list(others)
    found = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            found.append(orjson.loads(row))
    return found


def _is_of(origin: Origin) -> Any:  # noqa: ANN401 - a column
    return (F.col(ORIGIN[0]) == origin.topic) & (F.col(ORIGIN[1]) == origin.partition) & (F.col(ORIGIN[2]) == origin.offset)
