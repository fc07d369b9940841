"""The check of one result: which facts it needs of the records, and what is found once these are in the database."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

from audit.archive import Archive, Files, Origin, rows_of
from audit.audited import Facts, Row, Table
from audit.checkpoints import stretches
from audit.comparison import MOST_SHOWN, WRONG, Comparison, Difference, Excuses, Found
from audit.lateness import UNKNOWN
from audit.letters import DeadLetters, expected_letters, kinds_of_letters, letters_of
from audit.prefix import Prefix, prefix_of
from audit.records import records_between
from audit.recount import Recount
from audit.result_topic import ends_of, held
from audit.verdict import Lateness, Verdict
from audit.versions import beside
from contract import durations
from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import REAL_TIME, CheckpointPlace, others_of_query
from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.topics import DEAD_LETTERS
from contract.windows import window_of

Written = Mapping[bytes, Sequence[Row | None]]
"""Rows by key, in the order in which they are written."""


class Check(Protocol):
    """prefix: the records that the query has read. facts: what is taken from each."""

    prefix: Prefix[Any]
    facts: Sequence[Facts]

    def verdict(self) -> Verdict:
        """What is found. The facts are in the database. Raises StreamgaugeError for what cannot be checked."""

    def has_grown(self) -> bool:
        """Whether what is compared has changed since, so that a wrong row may be no error."""


class TableCheck:
    """The check of a result topic."""

    def __init__(self, table: Table, place: CheckpointPlace, recount: Recount, settings: Settings) -> None:
        self._table, self._recount, self._settings = table, recount, settings
        self.facts: Sequence[Facts] = [table.facts]
        self.prefix: Prefix[Any] = prefix_of(place, partial(ends_of, table.topic, settings), settings)

    def has_grown(self) -> bool:
        """Whether the topic has grown: Kafka may have compacted away a record because of a newer one."""
        return ends_of(self._table.topic, self._settings) != self.prefix.seen

    def verdict(self) -> Verdict:
        """The rows compared, by key."""
        table, prefix, recount = self._table, self.prefix, self._recount
        cut_ms = prefix.newest_cut_ms(table.watermark, table.skew or self._settings.partition_skew)
        recount.judge(table, stretches(prefix.first, prefix.known, prefix.committed), cut_ms)
        totals = Lateness(**recount.totals(table))
        if totals.unknown_rows and table.session_gap_us:
            msg = f"the journal lacks batches, so it is not known which of their rows came too late, and where sessions begin; `streamgauge reset {table.query}` recounts from the start"
            raise StreamgaugeError(msg)
        until_ms = prefix.watermark_ms(prefix.planned)
        before = recount.written(table, prefix.watermark_ms(prefix.committed), "NOT is_ahead")
        after = recount.written(table, until_ms) if prefix.planned > prefix.committed else before
        expected = {key: rows[-1] for key, rows in before.items() if rows[-1] is not None}
        of_topic = held(table, prefix.seen, self._settings)
        excuses = Excuses(
            unknown_lateness=frozenset(recount.written(table, until_ms, f"lateness = {UNKNOWN}") if totals.unknown_rows else ()),
            newest_cut_ms=cut_ms,
            growing=table.growing,
            session_gap=timedelta(microseconds=table.session_gap_us) if table.session_gap_us else None,
            kept_for=timedelta(seconds=durations.seconds(self._settings.result_retention, "STREAMGAUGE_RESULT_RETENTION")),
            lost_before=of_topic.lost_before,
            is_real_time=prefix.place.name.mode == REAL_TIME,
        )
        found = dict(of_topic.rows)
        faults = ["the topic has a record without a key, which belongs to no row"] if found.pop(b"", None) is not None else []
        if totals.wrongly_late_events:
            faults.append(
                f"{totals.wrongly_late_events:,} events count nowhere, though they came in time on their own partition: the watermark was ahead of every event that counts; recount with `streamgauge reset {table.query}`"
            )
        comparison = Comparison(_own(found, expected, table.key) if table.value else found, expected, _under_way(before, after), excuses)
        return prefix.verdict(
            table,
            comparison.counts,
            self._notes(totals.unknown_rows),
            lateness=totals,
            differences=comparison.differences(),
            faults=faults,
            beside=None if table.current is None else beside(table, of_topic, self._settings),
        )

    def _notes(self, unknown_rows: int) -> list[str]:
        others = [
            str(one.name) for one in others_of_query(self.prefix.place.name, self._settings) if Checkpoint(one.folder).last_committed >= 0
        ]
        unknown = f"some batches are not in the journal: of {unknown_rows:,} rows it is not known whether they came too late, and results that they touch and that differ are not counted as wrong"
        return [
            *([unknown] if unknown_rows else []),
            *([f"it has also run as {', '.join(others)}, into the same topic"] if others else []),
        ]


class LettersCheck:
    """The check of dead letters."""

    def __init__(self, letters: DeadLetters, place: CheckpointPlace, recount: Recount, settings: Settings) -> None:
        self._letters, self._recount, self._settings = letters, recount, settings
        self.facts: Sequence[Facts] = [letters.facts]
        self.prefix: Prefix[Any] = prefix_of(place, partial(ends_of, DEAD_LETTERS, settings), settings)

    def has_grown(self) -> bool:
        """No letter replaces another."""
        return False

    def verdict(self) -> Verdict:
        """The letters compared, by their records."""
        prefix = self.prefix
        expected, timestamps = expected_letters(self._recount.database, self._letters)
        found = letters_of(self._settings, prefix.topics, self._letters.reader, sum(prefix.seen.values()))
        kinds = kinds_of_letters(expected, timestamps, found, prefix)
        wrong = [
            Difference(kinds[origin], record_named(origin), expected.get(origin), tuple(found.by_origin.get(origin, ())) or None)
            for origin in sorted(origin for origin, kind in kinds.items() if kind in WRONG)[:MOST_SHOWN]
        ]
        lost = f"{self._letters.sink} has lost its oldest letters: those of records before the oldest one left are not checkable"
        return prefix.verdict(self._letters, Counter(kinds.values()), [] if found.oldest_ms is None else [lost], differences=wrong)


class ArchiveCheck:
    """The check of an archive."""

    def __init__(self, archive: Archive, place: CheckpointPlace, recount: Recount, settings: Settings) -> None:
        self._archive, self._settings = archive, settings
        self.prefix: Prefix[Any] = prefix_of(place, lambda: archive.files(settings), settings)
        self._files = Files(archive, self.prefix.seen, recount.database)
        self.facts: Sequence[Facts] = self._files.facts

    def has_grown(self) -> bool:
        """No row of an archive replaces another."""
        return False

    def verdict(self) -> Verdict:
        """The rows compared, by their records."""
        prefix = self.prefix
        counts, records = self._files.compare(prefix)
        wrong = [
            Difference(kind, record_named(record), _shown(self._expected(record)), _shown(self._files.rows_of(record)))
            for kind, record in records
        ]
        return prefix.verdict(self._archive, counts, differences=wrong, faults=self._files.faults)

    def _expected(self, record: Origin) -> Sequence[Row]:
        """The rows of a record, which is read again: of the others, only hashes are kept."""
        topic, partition, offset = record
        which, one = (topic, partition), Recount()
        if which not in self.prefix.ends:
            return []
        one.load([self._files.rows], records_between(self._settings, {which: offset}, {which: offset + 1}, self.prefix.modified_ms))
        return rows_of(self._archive, self._files.rows.name, record, one.database)


def _shown(rows: Sequence[Row]) -> object:
    """The row of a record, all of its rows if there are several, or None."""
    return rows[0] if len(rows) == 1 else rows or None


def record_named(origin: Origin) -> str:
    """A record, as a user reads it."""
    return "{}-{} offset {}".format(*origin)


def _own(found: Mapping[bytes, Found], expected: Mapping[bytes, Row], key: Collection[str]) -> dict[bytes, Found]:
    """The rows with such a key, from the first expected window on: a recount gives none before it."""
    first = min((window.start for one in expected if (window := window_of(one))), default=None)

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
