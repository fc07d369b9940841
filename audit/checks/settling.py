"""What a repeated check of a result topic keeps, so that the next one reads only what is new.

A row whose window has ended by the watermark is settled: no record can change it any more. The facts of the others are kept, and counted again
at each check. A table of states, such as those of cameras, keeps the state up to the watermark instead. A table with neither, such as one of
sessions, keeps all its facts, so each check takes longer than the one before.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb

from audit.audited import Row, Table
from audit.checks.check import Progress
from audit.checks.kept_rows import KeptRows, Settled
from audit.verdicts.comparison import Comparison, Found, Kind, Unreadable, is_same
from audit.verdicts.verdict import Lateness
from contract.checkpoints.contents import Offsets
from contract.windows import window_of

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_EXCUSED: tuple[Kind, ...] = ("not_checkable", "unknown_lateness")
_DELETED_AT_ONCE = 0.5
"""Facts that no longer matter are deleted when they are this part of all."""
Written = Mapping[bytes, Sequence[Row | None]]
"""Rows by key, in the order in which they are written."""


@dataclass
class TableProgress(Progress):
    """How far the check of a table has come, beside its rows and facts.

    first_offsets: where the topic began when the check was made first. newest_lost_ms: see ReadRange.newest_lost_ms. lost_before: see Excuses.
    settled_until: rows of windows that began before this time are settled. window_length: of the longest window. newest_deleted_ms: the newest
    event time of the facts that were deleted. read_at: when the topic was read last. fold_state: see Table.fold. excused: how many settled rows
    may differ from the expected ones, by kind. wrongly_late: the largest number of wrongly late events that a check has found. first_window:
    when the first window begins that must have a row.
    """

    first_offsets: Offsets = field(default_factory=dict)
    newest_lost_ms: int | None = None
    lost_before: datetime | None = None
    settled_until: datetime = BEGINNING
    window_length: timedelta = timedelta()
    newest_deleted_ms: int = 0
    read_at: datetime = BEGINNING
    fold_state: dict[Any, Any] = field(default_factory=dict)
    excused: Counter[Kind] = field(default_factory=Counter)
    wrongly_late: int = 0
    first_window: datetime | None = None


@dataclass(frozen=True)
class Recounted:
    """The rows, by key, that are not settled. committed: of the committed batches. planned: with the batch under way.

    fold_state: after the committed batches. unknown_keys: of rows that depend on records of which it is not known whether they counted.
    contested: how many events have reports that differ.
    """

    committed: Written
    planned: Written
    fold_state: dict[Any, Any]
    totals: Lateness
    unknown_keys: frozenset[bytes]
    contested: int


@dataclass(frozen=True)
class Compared:
    """The rows compared. settled: the settled ones among them. found: what the topic holds of all, None for nothing."""

    comparison: Comparison
    recounted: Recounted
    settled: Mapping[bytes, Settled]
    found: Mapping[bytes, Found | None]


def settle(table: Table, compared: Compared, progress: TableProgress, kept: KeptRows, watermark: datetime) -> None:
    """Settles the rows that can no longer change. Of the topic's other rows, keeps those that are not as they were settled.

    watermark: that of the committed batches.
    """
    settled, found, comparison = compared.settled, compared.found, compared.comparison
    recounted, kinds, new = compared.recounted.committed, comparison.kinds, dict[bytes, Settled]()
    horizon = _horizon(table, recounted, progress, watermark)
    final = recounted.keys() if table.fold else {key for key in kinds if key not in settled and is_before(key, horizon)}
    for key in final:
        row = found.get(key)
        if kinds.get(key) in _EXCUSED and not isinstance(row, Unreadable):
            if row is not None:
                new[key] = Settled(row, kinds[key])
        elif (expected := comparison.expected.get(key)) is not None:
            new[key] = Settled(expected)
    old = {key for key in settled if key in recounted or kinds.get(key) == "expired"}
    progress.excused = progress.excused - excuses_of(settled[key] for key in old) + excuses_of(new.values())
    kept.remove(old)
    kept.settle(new)
    settled_rows = {key: one.row for key, one in {**settled, **new}.items() if key in new or key not in old}
    rows = {key: found.get(key) for key in (*found, *new)}
    kept.unsettled = {
        key: row for key, row in rows.items() if (not is_same(row, settled_rows[key]) if key in settled_rows else row is not None)
    }
    progress.fold_state, progress.settled_until = compared.recounted.fold_state, horizon


def _horizon(table: Table, rows: Iterable[bytes], progress: TableProgress, watermark: datetime) -> datetime:
    """The time before which all windows that began have ended."""
    if "window" not in table.key or table.session_gap_us or table.mode == "complete":
        return progress.settled_until
    progress.window_length = max([progress.window_length, *(window.end - window.start for key in rows if (window := window_of(key)))])
    return max(progress.settled_until, watermark - progress.window_length) if progress.window_length else progress.settled_until


def delete_facts(table: Table, progress: TableProgress, watermark: datetime, database: duckdb.DuckDBPyConnection) -> Offsets:
    """Deletes the facts of settled rows, or those that the fold state contains. Returns the first offsets of the others."""
    facts, time = table.facts.name, table.event_time
    until = (watermark + timedelta(milliseconds=1) if table.fold else progress.settled_until).replace(tzinfo=None)
    counted = f"SELECT count(*), count(*) FILTER (old), epoch_ms(CAST(max({time}) FILTER (old) AS TIMESTAMP)) FROM (SELECT *, {time} < ? AS old FROM {facts})"
    number, deleted, newest_ms = database.execute(counted, [until]).fetchall()[0]
    if deleted and (table.fold or deleted > number * _DELETED_AT_ONCE):
        database.execute(f"CREATE OR REPLACE TABLE {facts} AS FROM {facts} WHERE {time} >= ?", [until])
        progress.newest_deleted_ms = max(progress.newest_deleted_ms, newest_ms)
    oldest = database.execute(f'SELECT topic, partition, min("offset") FROM {facts} GROUP BY ALL').fetchall()
    return {(topic, partition): offset for topic, partition, offset in oldest}


def excuses_of(rows: Iterable[Settled]) -> Counter[Kind]:
    return Counter(row.excuse for row in rows if row.excuse is not None)


def is_before(key: bytes, time: datetime) -> bool:
    return time > BEGINNING and (window := window_of(key)) is not None and window.start < time
