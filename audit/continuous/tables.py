"""The continuous check of a result topic.

A row whose window has ended by the watermark is settled: no record can change it any more. The facts of the others are kept, and counted again
at each look. Of a table that tells of states, as those of cameras, what is noted up to the watermark is kept instead. A table with neither, as
one of sessions, keeps all its facts, and each look takes longer than the one before.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from audit.audited import Row, Table
from audit.checkpoints import stretches
from audit.checks import expired_after, own_rows, under_way, unknown_sessions, wrongly_late
from audit.comparison import Comparison, Excuses, Found, Kind, Unreadable, is_same
from audit.continuous.commits import AtCommits, Values
from audit.continuous.rows import Rows, Settled
from audit.continuous.store import Store
from audit.continuous.watch import Progress, Watch, are_lost
from audit.lateness import UNKNOWN
from audit.prefix import Prefix
from audit.records import RecordReader
from audit.result_topic import decoder_of, offsets_of, read_value
from audit.verdict import Lateness, Verdict
from contract.checkpoints.contents import Offsets
from contract.checkpoints.names import REAL_TIME, CheckpointPlace
from contract.settings import Settings
from contract.windows import window_of

_EXCUSED: tuple[Kind, ...] = ("not_checkable", "unknown_lateness")
_DELETED_AT_ONCE = 0.5
"""Facts that no longer matter are deleted when they are this part of all."""
_MOST_FOLLOWED = 20_000
"""If the topic has got more records since the last look, what was in between is not known: they would fill the memory."""
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
Written = Mapping[bytes, list[Row | None]]


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
    """Rows that are not settled, by key: of the committed batches, and with the batch under way. noted: by the committed ones."""

    before: Written
    after: Written
    noted: dict[Any, Any]
    totals: Lateness


class TableWatch(Watch[TableProgress]):
    """The check of a result topic."""

    def __init__(self, table: Table, name: str, place: CheckpointPlace, store: Store, records: RecordReader, settings: Settings) -> None:
        super().__init__(name, place, store, records, settings)
        self._table = replace(table, facts=replace(table.facts, name=f"facts_{name}"))
        self._rows, self._decode = Rows(store, name), decoder_of(table, settings)
        self._has_windows = "window" in table.key and not table.session_gap_us and table.mode != "complete"
        self._firsts: Offsets = {}
        self._is_real_time = place.name.mode == REAL_TIME
        self._at_commits = AtCommits(self._decode)

    def compare(self, prefix: Prefix[Offsets], known: TableProgress) -> Verdict:
        """Reads what is new, recounts the rows that are not settled, and settles those that no record can change any more."""
        self.load([self._table.facts], prefix, known, prefix.ends)
        values = self._read_topic(known, prefix.seen)
        recounted, found = self._recounted(prefix, known), self._rows.found
        before = recounted.before
        known_rows = self._rows.settled_of({*(found.keys() - before.keys()), *(recounted.after if self._table.fold else ())})
        settled = {key: one.row for key, one in known_rows.items()}
        last = {key: rows[-1] for key, rows in before.items()}
        expected = {key: row for key, row in {**settled, **last}.items() if row is not None}
        held = {**settled, **found}
        comparison = self._comparison(held, expected, recounted, known, prefix, values)
        others = known.excused - _excused(known_rows.values())
        counts = comparison.counts + others
        counts["equal"] += self._rows.settled - len(settled) - others.total()
        known.wrongly_late = max(known.wrongly_late, recounted.totals.wrongly_late_events)
        faults = ["the topic has a record without a key, which belongs to no row"] if found.get(b"") is not None else []
        faults += [wrongly_late(self._table.query, known.wrongly_late)] if known.wrongly_late else []
        settled_until = known.settled_until
        self._settle(known, prefix, recounted, comparison, held, known_rows)
        if self._table.fold or known.settled_until != settled_until:
            self._delete_facts(known, prefix)
        self.store.keep(self.name, known)
        return prefix.verdict(self._table, +counts, differences=comparison.differences(), faults=faults)

    def begin(self, query_id: str | None, prefix: Prefix[Any]) -> TableProgress:
        self._rows.begin()
        self._at_commits = AtCommits(self._decode)
        self.store.database.execute(f"DROP TABLE IF EXISTS {self._table.facts.name}")
        cut_ms = prefix.newest_cut_ms(self._table.watermark, self._table.skew or self.settings.partition_skew)
        may_lose = "delete" in self._table.topic.config.get("cleanup.policy", "delete")
        lost_before = datetime.now(UTC) if may_lose and any(self._firsts.values()) else None
        return TableProgress(query_id, dict(prefix.kept), cut_ms=cut_ms, lost_before=lost_before)

    def seen(self) -> Offsets:
        """Where the topic ends, as it is when its beginning is noted."""
        offsets = offsets_of(self._table.topic, self.settings)
        self._firsts = {which: first for which, (first, _) in offsets.items()}
        return {which: end for which, (_, end) in offsets.items()}

    def has_lost(self, known: TableProgress, seen: Offsets) -> bool:
        """Whether the topic has lost records that were not read, or was recreated."""
        return self._may_lack_deletions(known, seen) or are_lost(known.of_topic, self._firsts) or are_lost(seen, known.of_topic)

    def _may_lack_deletions(self, known: TableProgress, seen: Offsets) -> bool:
        """Whether Kafka may have compacted away the deletions of rows that were written since the last look."""
        pause, kept_ms = datetime.now(UTC) - (self.looked or known.looked), self._table.topic.config.get("delete.retention.ms")
        return kept_ms is not None and seen != known.of_topic and pause > timedelta(milliseconds=int(kept_ms))

    def _read_topic(self, known: TableProgress, ends: Offsets) -> Values | None:
        """What each key has got since the last look; None if that may lack records, or is of no use."""
        starts = {which: known.of_topic.get(which, self._firsts[which]) for which in ends}
        if starts == ends == known.of_topic:
            return {}
        last, values, times = dict[bytes, bytes | None](), defaultdict[bytes, list[bytes | None]](list), list[datetime]()
        expected = sum(ends.values()) - sum(starts.values())
        is_followed = self._is_real_time and self.looked is not None and expected <= _MOST_FOLLOWED
        number = 0
        for records in self.records.between(starts, ends):
            number += len(records)
            for key, value in zip(*(records[name].to_pylist() for name in ("key", "value")), strict=True):
                last[key or b""] = value
                if is_followed:
                    values[key or b""].append(value)
            oldest = pc.min(records["timestamp"]).as_py()
            times += [] if oldest is None else [oldest.replace(tzinfo=UTC)]
        if known.lost_before is not None and not known.of_topic:
            known.lost_before = min([known.lost_before, *times])
        new = {key: None if value is None else read_value(self._decode, value) for key, value in last.items()}
        self._rows.found = {**self._rows.found, **new}
        known.of_topic |= ends
        known.looked = datetime.now(UTC)
        return values if is_followed and number == expected else None  # Kafka may have compacted some away

    def _recounted(self, prefix: Prefix[Offsets], known: TableProgress) -> _Recounted:
        recount, table, batches = self.store.recount, self._table, prefix.known
        cut_ms = None if known.cut_ms is None else max(known.cut_ms, known.deleted_ms)
        first = batches[0].ends if self.batches.has_forgotten else prefix.first
        recount.judge(table, stretches(first, batches, prefix.committed), cut_ms)
        totals, noted = Lateness(**recount.totals(table)), deepcopy(known.noted)
        before = after = recount.written(table, prefix.watermark_ms(prefix.committed), "NOT is_ahead", noted)
        if prefix.planned > prefix.committed:
            after = recount.written(table, prefix.watermark_ms(prefix.planned), noted=deepcopy(known.noted))
        return _Recounted(_unsettled(before, known), _unsettled(after, known), noted, totals)

    def _comparison(
        self,
        held: Mapping[bytes, Found | None],
        expected: Mapping[bytes, Row],
        recounted: _Recounted,
        known: TableProgress,
        prefix: Prefix[Offsets],
        values: Values | None,
    ) -> Comparison:
        table, unknown = self._table, frozenset[bytes]()
        if recounted.totals.unknown_rows:
            if table.session_gap_us:
                raise unknown_sessions(table.query)
            unknown = frozenset(self.store.recount.written(table, prefix.watermark_ms(prefix.planned), f"lateness = {UNKNOWN}"))
        found = {key: one for key, one in held.items() if one is not None and key}
        if table.value:
            starts = [window.start for key in expected if (window := window_of(key))]
            known.first = min([*starts, *([] if known.first is None else [known.first])], default=None)
            found = own_rows(found, known.first, table.key)
        excuses = Excuses(
            unknown_lateness=unknown,
            newest_cut_ms=known.cut_ms,
            growing=table.growing,
            session_gap=timedelta(microseconds=table.session_gap_us) if table.session_gap_us else None,
            kept_for=expired_after(self.settings),
            lost_before=known.lost_before,
            is_real_time=self._is_real_time,
        )
        unwritten = frozenset[bytes]()
        if self._is_real_time:
            committed = {key: expected[key] for key in recounted.before if key in expected}
            is_exact = known.cut_ms == 0 and not unknown
            unwritten = self._at_commits.lacking(prefix.committed, committed, found, values if is_exact else None)
        return Comparison(found, expected, under_way(recounted.before, recounted.after), excuses, unwritten)

    def _settle(
        self,
        known: TableProgress,
        prefix: Prefix[Offsets],
        recounted: _Recounted,
        comparison: Comparison,
        held: Mapping[bytes, Found | None],
        settled: Mapping[bytes, Settled],
    ) -> None:
        """Settles the rows that can no longer change, and keeps of the topic only what is not as settled."""
        before, kinds, new = recounted.before, comparison.kinds, dict[bytes, Settled]()
        horizon = self._horizon(known, prefix, before)
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
        known.noted, known.settled_until = recounted.noted, horizon

    def _horizon(self, known: TableProgress, prefix: Prefix[Offsets], rows: Iterable[bytes]) -> datetime:
        """Windows that began before have ended by the watermark of the committed batches."""
        if not self._has_windows:
            return known.settled_until
        known.length = max([known.length, *(window.end - window.start for key in rows if (window := window_of(key)))])
        ended = _BEGINNING + timedelta(milliseconds=prefix.watermark_ms(prefix.committed)) - known.length
        return max(known.settled_until, ended) if known.length else known.settled_until

    def _delete_facts(self, known: TableProgress, prefix: Prefix[Offsets]) -> None:
        """Deletes the facts of settled rows, or those that are noted, and forgets their batches."""
        database, facts, time = self.store.database, self._table.facts.name, self._table.event_time
        until = known.settled_until.replace(tzinfo=None)
        if self._table.fold:
            until = (_BEGINNING + timedelta(milliseconds=prefix.watermark_ms(prefix.committed) + 1)).replace(tzinfo=None)
        counted = f"SELECT count(*), count(*) FILTER (old), epoch_ms(CAST(max({time}) FILTER (old) AS TIMESTAMP)) FROM (SELECT *, {time} < ? AS old FROM {facts})"
        number, deleted, newest_ms = database.execute(counted, [until]).fetchall()[0]
        if deleted and (self._table.fold or deleted > number * _DELETED_AT_ONCE):
            database.execute(f"CREATE OR REPLACE TABLE {facts} AS FROM {facts} WHERE {time} >= ?", [until])
            known.deleted_ms = max(known.deleted_ms, newest_ms)
        left = database.execute(f'SELECT topic, partition, min("offset") FROM {facts} GROUP BY ALL').fetchall()
        self.batches.forget({(topic, partition): first for topic, partition, first in left}, prefix.committed)


def _excused(rows: Iterable[Settled]) -> Counter[Kind]:
    return Counter(one.excuse for one in rows if one.excuse is not None)


def _unsettled(rows: Written, known: TableProgress) -> Written:
    return {key: of_key for key, of_key in rows.items() if not _is_before(key, known.settled_until)}


def _is_before(key: bytes, time: datetime) -> bool:
    return (window := window_of(key)) is not None and window.start < time
