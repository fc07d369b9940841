"""The check of one result: which facts it needs of the records, and what is found once these are in the database."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from audit.archive import Archive, Files, Origin, rows_of
from audit.audited import Facts, Row, Table
from audit.checkpoints import stretches
from audit.comparison import Comparison, Difference, Excuses, Found, Kind, differences
from audit.lateness import UNKNOWN
from audit.letters import DeadLetters, Letter, Letters, expected_letters, kinds_of_letters, letters_of
from audit.prefix import Check, Prefix, prefix_of
from audit.records import records_between
from audit.recount import Recount
from audit.result_topic import ends_of, held
from audit.time_range import TimeRange, ms_of
from audit.verdict import Lateness, Verdict
from audit.versions import beside
from contract import durations
from contract.checkpoints.contents import Checkpoint, Offsets
from contract.checkpoints.names import REAL_TIME, CheckpointPlace, others_of_query
from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.topics import DEAD_LETTERS
from contract.windows import window_of

T = TypeVar("T")
Written = Mapping[bytes, Sequence[Row | None]]
"""Rows by key, in the order in which they are written."""


class TableCheck(Check):
    """The check of a result topic. span: only of rows whose windows lie within it, from the records that matter for them."""

    def __init__(self, table: Table, place: CheckpointPlace, recount: Recount, settings: Settings, span: TimeRange | None = None) -> None:
        self._table, self._recount, self._settings = table, recount, settings
        self._gap = timedelta(microseconds=table.session_gap_us)
        self._skew = table.skew or settings.partition_skew
        self.facts: Sequence[Facts] = [table.facts]
        self.prefix: Prefix[Any] = prefix_of(place, partial(ends_of, table.topic, settings), settings)
        # At once: until the source is read, Kafka may have compacted away many rows because of newer ones.
        self.held = held(table, self.prefix.seen, settings)
        self.narrow(span or TimeRange())

    def narrow(self, span: TimeRange, *, to_the_end: bool = False) -> None:
        """Leaves the rows of this time, and the records that matter for them. to_the_end: and all later ones, of which some may be late."""
        self._span, self.needed, first = span, span.needed_by(self._table), self.prefix.first
        if self.needed.start is not None:
            self.prefix = self.prefix.since(ms_of(self.needed.start), self._table.watermark, self._skew)
        if self.needed.end is not None and not to_the_end:
            self.prefix = self.prefix.until(ms_of(self.needed.end))
        self._starts_later = self.prefix.first != first

    def has_grown(self) -> bool:
        """Whether the topic has grown: Kafka may have compacted away a record because of a newer one."""
        return ends_of(self._table.topic, self._settings) != self.prefix.seen

    def verdict(self) -> Verdict:
        """The rows compared, by key."""
        comparison, totals = self.compared()
        faults = ["the topic has a record without a key, which belongs to no row"] if b"" in self.held.rows else []
        if totals.wrongly_late_events:
            faults.append(wrongly_late(self._table.query, totals.wrongly_late_events))
        return self.prefix.verdict(
            self._table,
            comparison.counts,
            self._notes(totals.unknown_rows),
            lateness=totals,
            differences=comparison.differences(),
            faults=faults,
            beside=beside(self._table, self.held, self._settings) if self._table.current is not None and self._is_whole else None,
        )

    def compared(self) -> tuple[Comparison, Lateness]:
        """The rows within the span, and how late their events were. The facts are in the database."""
        table, prefix, recount = self._table, self.prefix, self._recount
        cut_ms = prefix.newest_cut_ms(table.watermark, self._skew)
        recount.judge(table, stretches(prefix.first, prefix.known, prefix.committed), cut_ms, ms_of(self.needed.start))
        condition = self.needed.condition(table)
        totals = Lateness(**recount.totals(table, condition))
        if totals.unknown_rows and table.session_gap_us:
            raise unknown_sessions(table.query)

        def written(number: int, which: str) -> Written:
            return self._within(recount.written(table, prefix.watermark_ms(number), f"{which} AND {condition}"))

        before = written(prefix.committed, "NOT is_ahead")
        after = written(prefix.planned, "true") if prefix.planned > prefix.committed else before
        expected = {key: rows[-1] for key, rows in before.items() if rows[-1] is not None}
        excuses = Excuses(
            unknown_lateness=frozenset(written(prefix.planned, f"lateness = {UNKNOWN}") if totals.unknown_rows else ()),
            newest_cut_ms=cut_ms,
            growing=table.growing,
            session_gap=self._gap or None,
            kept_for=expired_after(self._settings),
            lost_before=self.held.lost_before,
            is_real_time=prefix.place.name.mode == REAL_TIME,
            newest_end=None if self._is_whole else max((window.end for key in self.held.rows if (window := window_of(key))), default=None),
        )
        found = self._within({key: row for key, row in self.held.rows.items() if key})
        first = (
            self._span.start if self._starts_later else min((window.start for key in expected if (window := window_of(key))), default=None)
        )
        own = own_rows(found, first, table.key) if table.value else found
        return Comparison(own, expected, under_way(before, after), excuses), totals

    @property
    def _is_whole(self) -> bool:
        return self._span == TimeRange()

    def _within(self, rows: Mapping[bytes, T]) -> dict[bytes, T]:
        """The rows whose windows lie within the span."""
        return dict(rows) if self._is_whole else {key: row for key, row in rows.items() if self._span.has(key)}

    def _notes(self, unknown_rows: int) -> list[str]:
        others = [
            str(one.name) for one in others_of_query(self.prefix.place.name, self._settings) if Checkpoint(one.folder).last_committed >= 0
        ]
        unknown = f"some batches are not in the journal: of {unknown_rows:,} rows it is not known whether they came too late, and results that they touch and that differ are not counted as wrong"
        unbounded = "no batch is known to have only events before --from, less the margin of docs/verify.md: read from the first record on"
        return [
            *([unknown] if unknown_rows else []),
            *([unbounded] if self._span.start is not None and not self._starts_later else []),
            *([f"it has also run as {', '.join(others)}, into the same topic"] if others else []),
        ]


class LettersCheck(Check):
    """The check of dead letters. span: only of those of records with Kafka timestamps within it."""

    def __init__(
        self, letters: DeadLetters, place: CheckpointPlace, recount: Recount, settings: Settings, span: TimeRange | None = None
    ) -> None:
        self._letters, self._recount, self._settings = letters, recount, settings
        self.facts: Sequence[Facts] = [letters.facts]
        whole: Prefix[Any] = prefix_of(place, partial(ends_of, DEAD_LETTERS, settings), settings)
        self.prefix = whole if span is None else whole.at_times(span, settings.kafka)

    def verdict(self) -> Verdict:
        """The letters compared, by their records."""
        prefix = self.prefix
        expected, timestamps = expected_letters(self._recount.database, self._letters)
        found = letters_of(self._settings, prefix.topics, self._letters.reader, prefix.seen)
        return letters_verdict(self._letters, prefix, expected, found, kinds_of_letters(expected, timestamps, found, prefix))


def letters_verdict(
    letters: DeadLetters,
    prefix: Prefix[Offsets],
    expected: Mapping[Origin, Letter],
    found: Letters,
    kinds: Mapping[Origin, Kind],
    others: Mapping[Kind, int] = MappingProxyType({}),
) -> Verdict:
    """The verdict on dead letters. kinds: what those of each record are. others: of how many more is known what they are."""
    wrong = differences(kinds, {origin: tuple(letters) for origin, letters in found.by_origin.items()}, expected, record_named)
    lost = f"{letters.sink} has lost its oldest letters: those of records before the oldest one left are not checkable"
    counts = Counter(kinds.values()) + Counter(others)
    return prefix.verdict(letters, counts, [] if found.oldest_ms is None else [lost], differences=wrong)


class ArchiveCheck(Check):
    """The check of an archive. span: only of the rows of records with Kafka timestamps within it."""

    def __init__(
        self, archive: Archive, place: CheckpointPlace, recount: Recount, settings: Settings, span: TimeRange | None = None
    ) -> None:
        self._archive, self._settings = archive, settings
        whole: Prefix[Any] = prefix_of(place, lambda: archive.files(settings), settings)
        self.prefix = whole if span is None else whole.at_times(span, settings.kafka)
        self._files = Files(archive, self.prefix, recount.database)
        self.facts: Sequence[Facts] = self._files.facts

    def verdict(self) -> Verdict:
        """The rows compared, by their records."""
        prefix = self.prefix
        counts, records = self._files.compare()
        wrong = [shown(self._archive, self._files, record, kind, prefix, self._settings) for kind, record in records]
        return prefix.verdict(self._archive, counts, differences=wrong, faults=self._files.faults)


def shown(archive: Archive, files: Files, record: Origin, kind: Kind, prefix: Prefix[Any], settings: Settings) -> Difference:
    """The rows of a record that are wrong. The record is read again: of the others, only hashes are kept."""
    topic, partition, offset = record
    which, one, expected = (topic, partition), Recount(), list[Row]()
    if which in prefix.ends:
        one.load([files.rows], records_between(settings, {which: offset}, {which: offset + 1}, prefix.modified_ms))
        expected = rows_of(archive, files.rows.name, record, one.database)
    return Difference(kind, record_named(record), _all(expected), _all(files.rows_of(record)))


def _all(rows: Sequence[Row]) -> object:
    """The row of a record, all of its rows if there are several, or None."""
    return rows[0] if len(rows) == 1 else rows or None


def record_named(origin: Origin) -> str:
    """A record, as a user reads it."""
    return "{}-{} offset {}".format(*origin)


def unknown_sessions(query: str) -> StreamgaugeError:
    """The error for sessions of which it is not known where they begin."""
    msg = f"the journal lacks batches, so it is not known which of their rows came too late, and where sessions begin; `streamgauge reset {query}` recounts from the start"
    return StreamgaugeError(msg)


def wrongly_late(query: str, events: int) -> str:
    """The fault that so many events were dropped by a watermark that was ahead."""
    return f"{events:,} events count nowhere, though they came in time on their own partition: the watermark was ahead of every event that counts; recount with `streamgauge reset {query}`"


def expired_after(settings: Settings) -> timedelta:
    """The age at which rows may be deleted, from the end of the newest window on."""
    return timedelta(seconds=durations.seconds(settings.result_retention, "STREAMGAUGE_RESULT_RETENTION"))


def own_rows(found: Mapping[bytes, Found], first: datetime | None, key: Collection[str]) -> dict[bytes, Found]:
    """The rows with such a key, from the first expected window on: a recount gives none before it."""

    def is_own(one: bytes) -> bool:
        window = window_of(one)
        return window is not None and first is not None and window.start >= first and json.loads(one).keys() == set(key)

    return {one: row for one, row in found.items() if is_own(one)}


def under_way(before: Written, after: Written) -> Written:
    """What the batch under way writes: a row of a window instead of the one before it, or more rows of a key that has a history."""
    found = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key, []), after.get(key, [None])
        if old != new:
            found[key] = new[len(old) :] if old and new[: len(old)] == old else new
    return found
