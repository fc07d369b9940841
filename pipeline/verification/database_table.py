"""Verifies a table of the database: compares the row of each key with the last value in the topic that it is made of."""

from collections import Counter
from typing import Any, cast

from pyspark.sql import DataFrame

from pipeline.checkpoint.contents import Checkpoint
from pipeline.database.changes import IS_DELETED, UNREADABLE
from pipeline.database.sink import DatabaseTable
from pipeline.sources.kafka import first_and_end_offsets
from pipeline.verification.check import Check
from pipeline.verification.outcome import MAX_DIFFERENCES, WRONG, Difference, Kind, Outcome, RowCounts

Key = tuple[Any, ...]


def verify(check: Check, sink: DatabaseTable) -> Outcome:
    """Verifies the table at the batch that it says it holds.

    A row that differs is not checkable if its key has a later record, for which compaction may have removed the one that the row is from.
    """
    checkpoint = Checkpoint(check.place.folder)
    committed = checkpoint.last_committed
    table = sink.table(check.settings, check.query.columns(check.spark))
    held = table.read()
    batch = held.batch if held.query_id == checkpoint.query_id else -1
    prefix = check.source.prefix(max(batch, committed), max(batch, committed))
    if batch < committed:
        fault = f"the table does not hold batch {committed}, which its query has committed; `streamgauge reset {sink.query}` writes it from the start"
        return check.found(prefix, faults=[fault])
    last = sink.newest(check.result(prefix.starts, prefix.ends)).where(f"not {IS_DELETED} and {sink.key[0]} is not null")
    last = last.drop(IS_DELETED, UNREADABLE)
    expected, found = _by_key(last, sink.key), {tuple(row[name] for name in sink.key): row for row in held.rows}
    now = {which: end for which, (_, end) in first_and_end_offsets(check.settings, prefix.ends).items()}
    later = check.result(prefix.ends, now).select(*sink.key).distinct()
    renewed = _by_key(later, sink.key).keys()
    kinds = {key: _kind(key, expected, found, is_renewed=key in renewed) for key in expected.keys() | found.keys()}
    wrong = sorted((key for key, kind in kinds.items() if kind in WRONG), key=str)
    differences = [
        Difference(cast("Kind", kinds[key]), ", ".join(map(str, key)), expected.get(key), found.get(key)) for key in wrong[:MAX_DIFFERENCES]
    ]
    return check.found(prefix, rows=RowCounts(**Counter(kinds.values())), differences=differences)


def _by_key(rows: DataFrame, key: tuple[str, ...]) -> dict[Key, dict[str, Any]]:
    return {tuple(row[name] for name in key): row for row in rows.toArrow().to_pylist()}


def _kind(key: Key, expected: dict[Key, Any], found: dict[Key, Any], *, is_renewed: bool) -> str:
    if expected.get(key) == found.get(key):
        return "equal"
    if is_renewed:
        return "not_checkable"
    return "missing" if key not in found else "different" if key in expected else "extra"
