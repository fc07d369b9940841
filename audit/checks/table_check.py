"""The check of a result topic: its rows against those that are made of the facts."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from audit.audited import Row, Table
from audit.checks.check import IncrementalCheck, has_gap
from audit.checks.commits import AtCommits, Values
from audit.checks.kept_rows import KeptRows
from audit.checks.settling import BEGINNING, Compared, Recounted, TableProgress, Written, delete_facts, excuses_of, is_before, settle
from audit.checks.store import Store
from audit.reading.checkpoints import stretches
from audit.reading.result_topic import decoder_of, offsets_of, read_value
from audit.recount.lateness import UNKNOWN
from audit.time_range import TimeRange, ms_of
from audit.verdicts.comparison import Comparison, Excuses, Found
from audit.verdicts.verdict import Lateness, Verdict
from contract.checkpoints.contents import Checkpoint, Offsets
from contract.checkpoints.names import REAL_TIME, CheckpointPlace, others_of_query
from contract.windows import window_of
from infrastructure import durations
from infrastructure.errors import StreamgaugeError

_MOST_FOLLOWED = 20_000
"""If the topic has got more records since the last check, their values are not kept, because they would fill the memory."""
_EVER = TimeRange()


class TableCheck(IncrementalCheck[TableProgress]):
    """The check of a result topic. span: only of rows whose windows lie within it, from the records that matter for them.

    unsettled: what the topic holds of keys whose rows are not settled, or not as expected: None for nothing.
    """

    unsettled: dict[bytes, Found | None]

    def __init__(self, table: Table, place: CheckpointPlace, store: Store, span: TimeRange | None = None) -> None:
        super().__init__(table.sink, place, store, span)
        self._table = replace(table, facts=store.own_facts(table.facts, self.name))
        self.facts = [self._table.facts]
        self._skew = table.skew or store.settings.partition_skew
        self._kept, self._decode = KeptRows(store, self.name), decoder_of(table, store.settings)
        self._first_offsets: Offsets = {}
        self._values: Values | None = None
        self._is_real_time = place.name.mode == REAL_TIME
        self._at_commits = AtCommits(self._decode)
        self._span = self.needed = _EVER
        self._starts_later = False
        self._may_expire = "delete" in table.topic.config.get("cleanup.policy", "delete")
        self._last_compared: Compared | None = None

    def narrow(self, span: TimeRange, *, to_the_end: bool = False) -> None:
        """Leaves the rows of this time, and the records that matter for them. to_the_end: and all later ones, of which some may be late."""
        self._span, self.needed, first_offsets = span, span.needed_by(self._table), self.read_range.first_offsets
        if self.needed.start is not None:
            self.read_range = self.read_range.since(ms_of(self.needed.start), self._table.watermark, self._skew)
        if self.needed.end is not None and not to_the_end:
            self.read_range = self.read_range.until(ms_of(self.needed.end))
        self._starts_later = self.read_range.first_offsets != first_offsets
        self.progress.newest_lost_ms = self.read_range.newest_lost_ms(self._table.watermark, self._skew)

    def read_sink(self) -> Offsets:
        """The end offsets of the topic. Its first offsets are set at the same moment."""
        offsets = offsets_of(self._table.topic, self.settings)
        self._first_offsets = {partition: first for partition, (first, _) in offsets.items()}
        return {partition: end for partition, (_, end) in offsets.items()}

    @property
    def rows(self) -> dict[bytes, Found]:
        """What the topic held when it was read whole."""
        return {key: row for key, row in self.unsettled.items() if row is not None}

    def has_grown(self) -> bool:
        """Whether the topic has grown: Kafka may have compacted away a record because of a newer one."""
        return self.read_sink() != self.read_range.sink_state

    def sink_has_lost_rows(self) -> bool:
        """Whether the topic was recreated, or has lost records: those that were not read, or any if its records do not expire."""
        ends, next_offsets = self.read_range.sink_state, self.progress.sink_offsets
        kept = next_offsets if self._may_expire else self.progress.first_offsets
        return self._may_lack_deletions() or has_gap(kept, self._first_offsets) or has_gap(ends, next_offsets)

    def start_over(self, query_id: str | None) -> TableProgress:
        self._kept.begin()
        self._at_commits = AtCommits(self._decode)
        self.store.database.execute(f"DROP TABLE IF EXISTS {self._table.facts.name}")
        newest_lost_ms = self.read_range.newest_lost_ms(self._table.watermark, self._skew)
        lost_before = datetime.now(UTC) if self._may_expire and any(self._first_offsets.values()) else None
        return TableProgress(
            query_id,
            dict(self.read_range.retained_offsets),
            first_offsets=self._first_offsets,
            newest_lost_ms=newest_lost_ms,
            lost_before=lost_before,
        )

    def read(self) -> None:
        """Reads the topic before the source: by the time the source is read, Kafka may have compacted away many rows because of newer ones."""
        progress, ends, self.unsettled, self._values = self.progress, self.read_range.sink_state, self._kept.unsettled, {}
        starts = {partition: progress.sink_offsets.get(partition, self._first_offsets[partition]) for partition in ends}
        if starts == ends == progress.sink_offsets:
            return
        last, values, times = dict[bytes, bytes | None](), defaultdict[bytes, list[bytes | None]](list), list[datetime]()
        expected = sum(ends.values()) - sum(starts.values())
        is_followed = self._is_real_time and self.checked_at is not None and expected <= _MOST_FOLLOWED
        count = 0
        for records in self.store.records.between(starts, ends):
            count += len(records)
            for key, value in zip(*(records[name].to_pylist() for name in ("key", "value")), strict=True):
                last[key or b""] = value
                if is_followed:
                    values[key or b""].append(value)
            oldest = pc.min(records["timestamp"]).as_py()
            times += [] if oldest is None else [oldest.replace(tzinfo=UTC)]
        if progress.lost_before is not None and not progress.sink_offsets:
            progress.lost_before = min([progress.lost_before, *times])
        self.unsettled |= {key: None if value is None else read_value(self._decode, value) for key, value in last.items()}
        self._values = values if is_followed and count == expected else None  # Kafka may have compacted some away
        progress.sink_offsets |= ends
        progress.read_at = datetime.now(UTC)

    def verdict(self) -> Verdict:
        """Compares the rows by key: those that are not settled with a recount, and the others with what they were."""
        table, progress, compared = self._table, self.progress, self.compared()
        self._last_compared, totals = compared, compared.recounted.totals
        others = progress.excused - excuses_of(compared.settled.values())
        counts = compared.comparison.counts + others
        counts["equal"] += self._kept.settled - len(compared.settled) - others.total()
        progress.wrongly_late = max(progress.wrongly_late, totals.wrongly_late_events)
        faults = ["the topic has a record without a key, which belongs to no row"] if self.unsettled.get(b"") is not None else []
        if progress.wrongly_late:
            faults.append(
                f"{progress.wrongly_late:,} events count nowhere, though they came in time on their own partition: the watermark was ahead of every event that counts; recount with `streamgauge reset {table.query}`"
            )
        differences, notes = compared.comparison.differences(), self._notes(totals.unknown_rows, compared.recounted.contested)
        return self.read_range.verdict(table, +counts, notes, lateness=totals, differences=differences, faults=faults)

    def compared(self) -> Compared:
        """The rows within the span. The facts are in the database."""
        recounted, unsettled = self._recounted(), self.unsettled
        settled = self._kept.settled_of(
            {*(unsettled.keys() - recounted.committed.keys()), *(recounted.planned if self._table.fold else ())}
        )
        settled_rows = {key: kept.row for key, kept in settled.items()}
        last = {key: rows[-1] for key, rows in recounted.committed.items()}
        expected = {key: row for key, row in {**settled_rows, **last}.items() if row is not None}
        found = {**settled_rows, **unsettled}
        return Compared(self._comparison(found, expected, recounted), recounted, settled, found)

    def save(self) -> None:
        """Settles the rows that can no longer change, and deletes the facts that are needed no longer."""
        settled_until = self.progress.settled_until
        watermark = BEGINNING + timedelta(milliseconds=self.read_range.watermark_ms(self.read_range.committed))
        if self._last_compared is not None:
            settle(self._table, self._last_compared, self.progress, self._kept, watermark)
        self._last_compared, self.unsettled = None, {}  # their memory is needed no longer
        if self._table.fold or self.progress.settled_until != settled_until:
            self.batches.forget(delete_facts(self._table, self.progress, watermark, self.store.database), self.read_range.committed)
        self.store.save(self.name, self.progress)

    def _may_lack_deletions(self) -> bool:
        """Whether Kafka may have compacted away the deletions of rows that were written since the last check."""
        progress, retention_ms = self.progress, self._table.topic.config.get("delete.retention.ms")
        pause = datetime.now(UTC) - (self.checked_at or progress.read_at)
        return (
            retention_ms is not None
            and self.read_range.sink_state != progress.sink_offsets
            and pause > timedelta(milliseconds=int(retention_ms))
        )

    def _recounted(self) -> Recounted:
        recount, table, progress, read_range = self.store.recount, self._table, self.progress, self.read_range
        newest_lost_ms = None if progress.newest_lost_ms is None else max(progress.newest_lost_ms, progress.newest_deleted_ms)
        first_offsets = read_range.batches[0].ends if self.batches.has_forgotten else read_range.first_offsets
        condition = self.needed.condition(table)
        recount.judge(table, stretches(first_offsets, read_range.batches, read_range.committed), newest_lost_ms, ms_of(self.needed.start))
        totals, fold_state = Lateness(**recount.totals(table, condition)), deepcopy(progress.fold_state)
        if totals.unknown_rows and table.session_gap_us:
            msg = f"the journal lacks batches, so it is not known which of their rows came too late, and where sessions begin; `streamgauge reset {table.query}` recounts from the start"
            raise StreamgaugeError(msg)

        def written(batch: int, facts: str, fold_state: dict[Any, Any] | None = None) -> Written:
            rows_by_key = recount.written(table, read_range.watermark_ms(batch), f"{facts} AND {condition}", fold_state)
            return {key: rows for key, rows in rows_by_key.items() if self._is_within(key) and not is_before(key, progress.settled_until)}

        committed = planned = written(read_range.committed, "NOT is_ahead", fold_state)
        if read_range.planned > read_range.committed:
            planned = written(read_range.planned, "true", deepcopy(progress.fold_state))
        unknown_keys = frozenset(written(read_range.planned, f"lateness = {UNKNOWN}") if totals.unknown_rows else ())
        contested, contested_keys = (
            (0, frozenset[bytes]()) if table.fold else recount.contested(table, read_range.watermark_ms(read_range.planned), condition)
        )
        return Recounted(committed, planned, fold_state, totals, unknown_keys | contested_keys, contested)

    def _comparison(self, topic_rows: Mapping[bytes, Found | None], expected: Mapping[bytes, Row], recounted: Recounted) -> Comparison:
        table, progress = self._table, self.progress
        present = {key: row for key, row in topic_rows.items() if row is not None and key}
        found = {key: row for key, row in present.items() if self._is_within(key)}
        if table.value:
            starts = [self._span.start] if self._starts_later else [window.start for key in expected if (window := window_of(key))]
            progress.first_window = min((start for start in (progress.first_window, *starts) if start), default=None)
            found = _own_rows(found, progress.first_window, table.key)
        excuses = Excuses(
            unknown_lateness=recounted.unknown_keys,
            newest_lost_ms=progress.newest_lost_ms,
            growing=table.growing,
            session_gap=timedelta(microseconds=table.session_gap_us) or None,
            kept_for=timedelta(seconds=durations.seconds(self.settings.result_retention, "STREAMGAUGE_RESULT_RETENTION")),
            lost_before=progress.lost_before,
            is_real_time=self._is_real_time,
            newest_end=None if self._span == _EVER else max((window.end for key in present if (window := window_of(key))), default=None),
        )
        unwritten = frozenset[bytes]()
        if self._is_real_time:
            committed = {key: expected[key] for key in recounted.committed if key in expected}
            is_exact = progress.newest_lost_ms == 0 and not recounted.unknown_keys
            unwritten = self._at_commits.lacking(self.read_range.committed, committed, found, self._values if is_exact else None)
        return Comparison(found, expected, _under_way(recounted.committed, recounted.planned), excuses, unwritten)

    def _is_within(self, key: bytes) -> bool:
        return self._span == _EVER or self._span.has(key)

    def _notes(self, unknown_rows: int, contested: int) -> list[str]:
        others = [
            str(place.name)
            for place in others_of_query(self.read_range.place.name, self.settings)
            if Checkpoint(place.folder).last_committed >= 0
        ]
        unknown = f"some batches are not in the journal: of {unknown_rows:,} rows it is not known whether they came too late, and results that they touch and that differ are not counted as wrong"
        unbounded = "no batch is known to have only events before --from, less the margin of docs/verify.md: read from the first record on"
        differing = f"{contested:,} events have reports with different contents: Spark counts the report that it reads first, so rows that depend on these events and differ are not counted as wrong"
        return [
            *([unknown] if unknown_rows else []),
            *([differing] if contested else []),
            *([unbounded] if self._span.start is not None and not self._starts_later else []),
            *([f"it has also run as {', '.join(others)}, into the same topic"] if others else []),
        ]


def _own_rows(found: Mapping[bytes, Found], first_window: datetime | None, columns: Collection[str]) -> dict[bytes, Found]:
    """The rows with these key columns, from the first expected window on: a recount gives none before it."""

    def is_own(key: bytes) -> bool:
        window = window_of(key)
        return window is not None and first_window is not None and window.start >= first_window and json.loads(key).keys() == set(columns)

    return {key: row for key, row in found.items() if is_own(key)}


def _under_way(committed: Written, planned: Written) -> Written:
    """What the batch under way writes: a row of a window instead of the one before it, or more rows of a key that has a history."""
    written = {}
    for key in committed.keys() | planned.keys():
        old, new = committed.get(key, []), planned.get(key, [None])
        if old != new:
            written[key] = new[len(old) :] if old and new[: len(old)] == old else new
    return written
