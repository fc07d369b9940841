"""The check of a result topic.

A row whose window has ended by the watermark is settled: no record can change it any more. The facts of the others are kept, and counted again
at each look. Of a table that tells of states, as those of cameras, what is noted up to the watermark is kept instead. A table with neither, as
one of sessions, keeps all its facts, and each look takes longer than the one before.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from audit.audited import Row, Table
from audit.checks.check import Progress, Watch, are_lost
from audit.checks.commits import AtCommits, Values
from audit.checks.kept_rows import Rows, Settled
from audit.checks.store import Store
from audit.reading.checkpoints import stretches
from audit.reading.result_topic import decoder_of, offsets_of, read_value
from audit.recount.lateness import UNKNOWN
from audit.time_range import TimeRange, ms_of
from audit.verdicts.comparison import Comparison, Excuses, Found, Kind, Unreadable, is_same
from audit.verdicts.verdict import Lateness, Verdict
from contract.checkpoints.contents import Checkpoint, Offsets
from contract.checkpoints.names import REAL_TIME, CheckpointPlace, others_of_query
from contract.windows import window_of
from infrastructure import durations
from infrastructure.errors import StreamgaugeError

_EXCUSED: tuple[Kind, ...] = ("not_checkable", "unknown_lateness")
_DELETED_AT_ONCE = 0.5
"""Facts that no longer matter are deleted when they are this part of all."""
_MOST_FOLLOWED = 20_000
"""If the topic has got more records since the last look, what was in between is not known: they would fill the memory."""
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_EVER = TimeRange()
Written = Mapping[bytes, Sequence[Row | None]]
"""Rows by key, in the order in which they are written."""


@dataclass
class TableProgress(Progress):
    """What is known of a table, beside its rows and facts.

    cut_ms: see Prefix.newest_cut_ms. lost_before: see Excuses. settled_until: rows of windows that began before are settled. length: of a window.
    deleted_ms: the newest event time of the facts that are deleted. looked: when the topic was read last. noted: see Table.fold. excused: how many
    settled rows may differ from what they must be, by kind. wrongly_late: the most events that were. first: where the first window of a row begins
    that must be there.
    """

    cut_ms: int | None = None
    lost_before: datetime | None = None
    settled_until: datetime = _BEGINNING
    length: timedelta = timedelta()
    deleted_ms: int = 0
    looked: datetime = _BEGINNING
    noted: dict[Any, Any] = field(default_factory=dict)
    excused: Counter[Kind] = field(default_factory=Counter)
    wrongly_late: int = 0
    first: datetime | None = None


@dataclass(frozen=True)
class _Recounted:
    """Rows that are not settled, by key: of the committed batches, and with the batch under way. noted: by the committed ones.

    unknown: the keys of those that depend on records of which it is not known whether they were late.
    """

    before: Written
    after: Written
    noted: dict[Any, Any]
    totals: Lateness
    unknown: frozenset[bytes]


@dataclass(frozen=True)
class Compared:
    """The rows compared. settled: those that are and were needed. held: what the topic has of them all, None for nothing."""

    comparison: Comparison
    recounted: _Recounted
    settled: Mapping[bytes, Settled]
    held: Mapping[bytes, Found | None]


class TableCheck(Watch[TableProgress]):
    """The check of a result topic. span: only of rows whose windows lie within it, from the records that matter for them.

    found: what the topic holds of keys that are not settled, or not as they must be: None for nothing.
    """

    found: dict[bytes, Found | None]

    def __init__(self, table: Table, place: CheckpointPlace, store: Store, span: TimeRange | None = None) -> None:
        super().__init__(table.sink, place, store, span)
        self._table = replace(table, facts=store.own(table.facts, self.name))
        self.facts = [self._table.facts]
        self._skew = table.skew or store.settings.partition_skew
        self._rows, self._decode = Rows(store, self.name), decoder_of(table, store.settings)
        self._has_windows = "window" in table.key and not table.session_gap_us and table.mode != "complete"
        self._firsts: Offsets = {}
        self._values: Values | None = None
        self._is_real_time = place.name.mode == REAL_TIME
        self._at_commits = AtCommits(self._decode)
        self._span = self.needed = _EVER
        self._starts_later = False
        self._last_compared: Compared | None = None

    def narrow(self, span: TimeRange, *, to_the_end: bool = False) -> None:
        """Leaves the rows of this time, and the records that matter for them. to_the_end: and all later ones, of which some may be late."""
        self._span, self.needed, first = span, span.needed_by(self._table), self.prefix.first
        if self.needed.start is not None:
            self.prefix = self.prefix.since(ms_of(self.needed.start), self._table.watermark, self._skew)
        if self.needed.end is not None and not to_the_end:
            self.prefix = self.prefix.until(ms_of(self.needed.end))
        self._starts_later = self.prefix.first != first
        self.known.cut_ms = self.prefix.newest_cut_ms(self._table.watermark, self._skew)

    def seen(self) -> Offsets:
        """Where the topic ends, as it is when its beginning is noted."""
        offsets = offsets_of(self._table.topic, self.settings)
        self._firsts = {which: first for which, (first, _) in offsets.items()}
        return {which: end for which, (_, end) in offsets.items()}

    @property
    def rows(self) -> dict[bytes, Found]:
        """What the topic held when it was read whole."""
        return {key: row for key, row in self.found.items() if row is not None}

    def has_grown(self) -> bool:
        """Whether the topic has grown: Kafka may have compacted away a record because of a newer one."""
        return self.seen() != self.prefix.seen

    def has_lost(self) -> bool:
        """Whether the topic has lost records that were not read, or was recreated."""
        seen, known = self.prefix.seen, self.known
        return self._may_lack_deletions() or are_lost(known.of_topic, self._firsts) or are_lost(seen, known.of_topic)

    def begin(self, query_id: str | None) -> TableProgress:
        self._rows.begin()
        self._at_commits = AtCommits(self._decode)
        self.store.database.execute(f"DROP TABLE IF EXISTS {self._table.facts.name}")
        cut_ms = self.prefix.newest_cut_ms(self._table.watermark, self._skew)
        may_lose = "delete" in self._table.topic.config.get("cleanup.policy", "delete")
        lost_before = datetime.now(UTC) if may_lose and any(self._firsts.values()) else None
        return TableProgress(query_id, dict(self.prefix.kept), cut_ms=cut_ms, lost_before=lost_before)

    def read(self) -> None:
        """Reads the topic, at once: until the source is read, Kafka may have compacted away many rows because of newer ones."""
        known, ends, self.found, self._values = self.known, self.prefix.seen, self._rows.found, {}
        starts = {which: known.of_topic.get(which, self._firsts[which]) for which in ends}
        if starts == ends == known.of_topic:
            return
        last, values, times = dict[bytes, bytes | None](), defaultdict[bytes, list[bytes | None]](list), list[datetime]()
        expected = sum(ends.values()) - sum(starts.values())
        is_followed = self._is_real_time and self.looked is not None and expected <= _MOST_FOLLOWED
        number = 0
        for records in self.store.records.between(starts, ends):
            number += len(records)
            for key, value in zip(*(records[name].to_pylist() for name in ("key", "value")), strict=True):
                last[key or b""] = value
                if is_followed:
                    values[key or b""].append(value)
            oldest = pc.min(records["timestamp"]).as_py()
            times += [] if oldest is None else [oldest.replace(tzinfo=UTC)]
        if known.lost_before is not None and not known.of_topic:
            known.lost_before = min([known.lost_before, *times])
        self.found |= {key: None if value is None else read_value(self._decode, value) for key, value in last.items()}
        self._values = values if is_followed and number == expected else None  # Kafka may have compacted some away
        known.of_topic |= ends
        known.looked = datetime.now(UTC)

    def verdict(self) -> Verdict:
        """The rows compared, by key: those that are not settled recounted, and the others as they were."""
        table, known, now = self._table, self.known, self.compared()
        self._last_compared, totals = now, now.recounted.totals
        others = known.excused - _excused(now.settled.values())
        counts = now.comparison.counts + others
        counts["equal"] += self._rows.settled - len(now.settled) - others.total()
        known.wrongly_late = max(known.wrongly_late, totals.wrongly_late_events)
        faults = ["the topic has a record without a key, which belongs to no row"] if self.found.get(b"") is not None else []
        if known.wrongly_late:
            faults.append(
                f"{known.wrongly_late:,} events count nowhere, though they came in time on their own partition: the watermark was ahead of every event that counts; recount with `streamgauge reset {table.query}`"
            )
        differences, notes = now.comparison.differences(), self._notes(totals.unknown_rows)
        return self.prefix.verdict(table, +counts, notes, lateness=totals, differences=differences, faults=faults)

    def compared(self) -> Compared:
        """The rows within the span. The facts are in the database."""
        recounted, found = self._recounted(), self.found
        before = recounted.before
        settled = self._rows.settled_of({*(found.keys() - before.keys()), *(recounted.after if self._table.fold else ())})
        must_be = {key: one.row for key, one in settled.items()}
        last = {key: rows[-1] for key, rows in before.items()}
        expected = {key: row for key, row in {**must_be, **last}.items() if row is not None}
        held = {**must_be, **found}
        return Compared(self._comparison(held, expected, recounted), recounted, settled, held)

    def keep(self) -> None:
        """Settles the rows that can no longer change, and deletes the facts that are needed no longer."""
        settled_until = self.known.settled_until
        if self._last_compared is not None:
            self._settle(self._last_compared)
        self._last_compared, self.found = None, {}  # their memory is needed no longer
        if self._table.fold or self.known.settled_until != settled_until:
            self._delete_facts()
        self.store.keep(self.name, self.known)

    def _may_lack_deletions(self) -> bool:
        """Whether Kafka may have compacted away the deletions of rows that were written since the last look."""
        known, kept_ms = self.known, self._table.topic.config.get("delete.retention.ms")
        pause = datetime.now(UTC) - (self.looked or known.looked)
        return kept_ms is not None and self.prefix.seen != known.of_topic and pause > timedelta(milliseconds=int(kept_ms))

    def _recounted(self) -> _Recounted:
        recount, table, known, prefix = self.store.recount, self._table, self.known, self.prefix
        cut_ms = None if known.cut_ms is None else max(known.cut_ms, known.deleted_ms)
        first = prefix.known[0].ends if self.batches.has_forgotten else prefix.first
        condition = self.needed.condition(table)
        recount.judge(table, stretches(first, prefix.known, prefix.committed), cut_ms, ms_of(self.needed.start))
        totals, noted = Lateness(**recount.totals(table, condition)), deepcopy(known.noted)
        if totals.unknown_rows and table.session_gap_us:
            msg = f"the journal lacks batches, so it is not known which of their rows came too late, and where sessions begin; `streamgauge reset {table.query}` recounts from the start"
            raise StreamgaugeError(msg)

        def written(batch: int, which: str, noted: dict[Any, Any] | None = None) -> Written:
            rows = recount.written(table, prefix.watermark_ms(batch), f"{which} AND {condition}", noted)
            return {key: of_key for key, of_key in rows.items() if self._is_within(key) and not _is_before(key, known.settled_until)}

        before = after = written(prefix.committed, "NOT is_ahead", noted)
        if prefix.planned > prefix.committed:
            after = written(prefix.planned, "true", deepcopy(known.noted))
        unknown = frozenset(written(prefix.planned, f"lateness = {UNKNOWN}") if totals.unknown_rows else ())
        return _Recounted(before, after, noted, totals, unknown)

    def _comparison(self, held: Mapping[bytes, Found | None], expected: Mapping[bytes, Row], recounted: _Recounted) -> Comparison:
        table, known = self._table, self.known
        whole = {key: one for key, one in held.items() if one is not None and key}
        found = {key: one for key, one in whole.items() if self._is_within(key)}
        if table.value:
            starts = [self._span.start] if self._starts_later else [window.start for key in expected if (window := window_of(key))]
            known.first = min((one for one in (known.first, *starts) if one), default=None)
            found = _own_rows(found, known.first, table.key)
        excuses = Excuses(
            unknown_lateness=recounted.unknown,
            newest_cut_ms=known.cut_ms,
            growing=table.growing,
            session_gap=timedelta(microseconds=table.session_gap_us) or None,
            kept_for=timedelta(seconds=durations.seconds(self.settings.result_retention, "STREAMGAUGE_RESULT_RETENTION")),
            lost_before=known.lost_before,
            is_real_time=self._is_real_time,
            newest_end=None if self._span == _EVER else max((window.end for key in whole if (window := window_of(key))), default=None),
        )
        unwritten = frozenset[bytes]()
        if self._is_real_time:
            committed = {key: expected[key] for key in recounted.before if key in expected}
            is_exact = known.cut_ms == 0 and not recounted.unknown
            unwritten = self._at_commits.lacking(self.prefix.committed, committed, found, self._values if is_exact else None)
        return Comparison(found, expected, _under_way(recounted.before, recounted.after), excuses, unwritten)

    def _is_within(self, key: bytes) -> bool:
        return self._span == _EVER or self._span.has(key)

    def _notes(self, unknown_rows: int) -> list[str]:
        others = [
            str(one.name) for one in others_of_query(self.prefix.place.name, self.settings) if Checkpoint(one.folder).last_committed >= 0
        ]
        unknown = f"some batches are not in the journal: of {unknown_rows:,} rows it is not known whether they came too late, and results that they touch and that differ are not counted as wrong"
        unbounded = "no batch is known to have only events before --from, less the margin of docs/verify.md: read from the first record on"
        return [
            *([unknown] if unknown_rows else []),
            *([unbounded] if self._span.start is not None and not self._starts_later else []),
            *([f"it has also run as {', '.join(others)}, into the same topic"] if others else []),
        ]

    def _settle(self, now: Compared) -> None:
        """Settles the rows that can no longer change, and keeps of the topic only what is not as settled."""
        known, settled, held, comparison = self.known, now.settled, now.held, now.comparison
        before, kinds, new = now.recounted.before, comparison.kinds, dict[bytes, Settled]()
        horizon = self._horizon(before)
        done = before.keys() if self._table.fold else {key for key in kinds if key not in settled and _is_before(key, horizon)}
        for key in done:
            row = held.get(key)
            if kinds.get(key) in _EXCUSED and not isinstance(row, Unreadable):
                if row is not None:
                    new[key] = Settled(row, kinds[key])
            elif (expected := comparison.expected.get(key)) is not None:
                new[key] = Settled(expected)
        old = {key for key in settled if key in before or kinds.get(key) == "expired"}
        known.excused = known.excused - _excused(settled[key] for key in old) + _excused(new.values())
        self._rows.remove(old)
        self._rows.settle(new)
        must_be = {key: one.row for key, one in {**settled, **new}.items() if key in new or key not in old}
        found = {key: held.get(key) for key in (*held, *new)}
        self._rows.found = {
            key: row for key, row in found.items() if (not is_same(row, must_be[key]) if key in must_be else row is not None)
        }
        known.noted, known.settled_until = now.recounted.noted, horizon

    def _horizon(self, rows: Iterable[bytes]) -> datetime:
        """Windows that began before have ended by the watermark of the committed batches."""
        known = self.known
        if not self._has_windows:
            return known.settled_until
        known.length = max([known.length, *(window.end - window.start for key in rows if (window := window_of(key)))])
        ended = _BEGINNING + timedelta(milliseconds=self.prefix.watermark_ms(self.prefix.committed)) - known.length
        return max(known.settled_until, ended) if known.length else known.settled_until

    def _delete_facts(self) -> None:
        """Deletes the facts of settled rows, or those that are noted, and forgets their batches."""
        database, facts, time, known = self.store.database, self._table.facts.name, self._table.event_time, self.known
        until = known.settled_until.replace(tzinfo=None)
        if self._table.fold:
            until = (_BEGINNING + timedelta(milliseconds=self.prefix.watermark_ms(self.prefix.committed) + 1)).replace(tzinfo=None)
        counted = f"SELECT count(*), count(*) FILTER (old), epoch_ms(CAST(max({time}) FILTER (old) AS TIMESTAMP)) FROM (SELECT *, {time} < ? AS old FROM {facts})"
        number, deleted, newest_ms = database.execute(counted, [until]).fetchall()[0]
        if deleted and (self._table.fold or deleted > number * _DELETED_AT_ONCE):
            database.execute(f"CREATE OR REPLACE TABLE {facts} AS FROM {facts} WHERE {time} >= ?", [until])
            known.deleted_ms = max(known.deleted_ms, newest_ms)
        left = database.execute(f'SELECT topic, partition, min("offset") FROM {facts} GROUP BY ALL').fetchall()
        self.batches.forget({(topic, partition): first for topic, partition, first in left}, self.prefix.committed)


def _excused(rows: Iterable[Settled]) -> Counter[Kind]:
    return Counter(one.excuse for one in rows if one.excuse is not None)


def _is_before(key: bytes, time: datetime) -> bool:
    return time > _BEGINNING and (window := window_of(key)) is not None and window.start < time


def _own_rows(found: Mapping[bytes, Found], first: datetime | None, key: Collection[str]) -> dict[bytes, Found]:
    """The rows with such a key, from the first expected window on: a recount gives none before it."""

    def is_own(one: bytes) -> bool:
        window = window_of(one)
        return window is not None and first is not None and window.start >= first and json.loads(one).keys() == set(key)

    return {one: row for one, row in found.items() if is_own(one)}


def _under_way(before: Written, after: Written) -> Written:
    """What the batch under way writes: a row of a window instead of the one before it, or more rows of a key that has a history."""
    found = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key, []), after.get(key, [None])
        if old != new:
            found[key] = new[len(old) :] if old and new[: len(old)] == old else new
    return found
