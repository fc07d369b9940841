"""Verifies a compacted topic: compares the last row of each key with a recount."""

from collections.abc import Callable, Collection
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from contract import durations
from pipeline.verification.check import Check
from pipeline.verification.expectation import Expectation
from pipeline.verification.outcome import Lateness, Outcome
from pipeline.verification.prefix import Prefix, looked_at, newest_cut_ms
from pipeline.verification.tables import Comparison, Excuses, Row, Tables, own_rows
from pipeline.verification.topic_table import TopicTable, ends_of, read_table
from pipeline.verification.versions import compared

if TYPE_CHECKING:
    from pipeline.sinks.topics import AlertsTopic, CompactedTopic

ATTEMPTS = 3
Decode = Callable[[bytes], Row]


def verify(
    check: Check,
    sink: "CompactedTopic | AlertsTopic",
    decode: Decode,
    decode_expected: Decode,
    among_others: Collection[str] | None = None,
) -> Outcome:
    """Verifies the topics of `sink`, no key of which is in two of them.

    decode: decodes the topics' values. decode_expected: decodes the recount's values, which are JSON.
    among_others: the columns of the query's keys if the topics hold other records too, and keep the query's own from before a reset.
    """
    query, settings = check.query, check.settings
    for attempt in range(ATTEMPTS):
        committed, planned, limits = looked_at(check.place, lambda: ends_of(sink.topics, settings))
        table = read_table(settings, limits)
        prefix = check.taken.prefix(committed, planned)
        lateness, comparison = _compare(check, prefix, table, decode, decode_expected, among_others)
        if not comparison.unsettled or attempt == ATTEMPTS - 1:
            break
    faults = [f"{table.keyless} records without a key, which belong to no row"] if table.keyless else []
    if lateness is not None and lateness.wrongly_late_events:
        faults.append(
            f"{lateness.wrongly_late_events:,} events count nowhere, though they came in time on their own partition: the watermark was ahead of every event that counts; recount with `streamgauge reset {query.name}`"
        )
    rows, differences, notes = comparison.counts, comparison.differences, _gaps(prefix, lateness)
    beside = None if sink.current is None else compared(sink.current, table.values, decode, settings)
    return check.found(prefix, lateness=lateness, rows=rows, differences=differences, faults=faults, notes=notes, beside=beside)


def _compare(
    check: Check, prefix: Prefix, found: TopicTable, decode: Decode, decode_expected: Decode, among_others: Collection[str] | None
) -> tuple[Lateness | None, Comparison]:
    query, settings = check.query, check.settings
    cut_until_ms = newest_cut_ms(prefix, check.place, check.spark, query, settings)
    delay = query.watermark or settings.watermark
    expectation = Expectation(query, check.taken.between, prefix, check.schemas, delay=delay, cut_until_ms=cut_until_ms)
    try:
        lateness = expectation.lateness()
        excuses = Excuses(
            untold=expectation.untold_keys() if lateness and lateness.untold_rows else frozenset(),
            is_cut=prefix.is_cut,
            newest_cut_ms=cut_until_ms,
            growing=query.growing,
            kept_for=timedelta(seconds=durations.seconds(settings.result_retention, "STREAMGAUGE_RESULT_RETENTION")),
            session_gap=timedelta(seconds=durations.seconds(query.session_gap, "session_gap")) if query.session_gap else None,
            is_real_time=query.real_time is not None,
        )
        expected = expectation.rows()
        tables = Tables(
            expected,
            found.values if among_others is None else own_rows(found.values, expected, among_others),
            decode=decode,
            decode_expected=decode_expected,
            expected_ahead=(lambda: expectation.rows(ahead=True)) if prefix.planned > prefix.committed else None,
            newer=found.newer,
        )
        return lateness, tables.compare(excuses)
    finally:
        expectation.close()


def _gaps(prefix: Prefix, lateness: Lateness | None) -> list[str]:
    if lateness is None or not lateness.untold_rows:
        return []
    numbers = [-1, *(batch.number for batch in prefix.batches)]
    gaps = [(one + 1, other - 1) for one, other in pairwise(numbers) if other > one + 1]
    named_gaps = ", ".join(f"{one} to {other}" if one < other else f"{one}" for one, other in gaps[:3])
    return [
        f"batches {named_gaps} are not in the journal: of {lateness.untold_rows:,} rows it is not known whether they came too late, and results that they touch and that differ are not counted as wrong"
    ]
