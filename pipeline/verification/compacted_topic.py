"""Verifies a compacted topic: compares the last row of each key with a recount."""

from collections.abc import Callable
from datetime import timedelta

import orjson

from contract import durations
from contract.settings import Settings
from contract.windows import utc, window_of
from pipeline.sinks.topics import AlertsTopic, CompactedAvroTopic, CompactedTopic
from pipeline.verification.check import Check
from pipeline.verification.expectation import Expectation
from pipeline.verification.outcome import Beside, Difference, Lateness, Outcome, RowCounts
from pipeline.verification.prefix import Prefix, between_batches
from pipeline.verification.tables import Row, Rows, Tables, json_row, own_rows
from pipeline.verification.topic_table import ends_of, read_table

ATTEMPTS = 3
Decode = Callable[[bytes], Row]


def verify(check: Check, sink: CompactedTopic | AlertsTopic) -> Outcome:
    """Verifies the topics of `sink`, no key of which is in two of them. Then, of a version beside another, compares both."""
    settings = check.settings
    decode = _decoder(sink, settings)
    for _ in range(ATTEMPTS):
        committed, planned, limits = between_batches(check.place, lambda: ends_of(sink.topics, settings))
        table = read_table(settings, limits)
        prefix = check.source.prefix(committed, planned)
        lateness, (rows, differences) = _compare(check, prefix, sink, table, decode)
        # Kafka may have compacted away a record below the limits because of a newer one above.
        if not rows.wrong or ends_of(sink.topics, settings) == limits:
            break
    faults = ["the topic has a record without a key, which belongs to no row"] if b"" in table else []
    if lateness is not None and lateness.wrongly_late_events:
        faults.append(
            f"{lateness.wrongly_late_events:,} events count nowhere, though they came in time on their own partition: the watermark was ahead of every event that counts; recount with `streamgauge reset {check.query.name}`"
        )
    notes = []
    if lateness is not None and lateness.unknown_rows:
        notes.append(
            f"some batches are not in the journal: of {lateness.unknown_rows:,} rows it is not known whether they came too late, and results that they touch and that differ are not counted as wrong"
        )
    beside = None if sink.current is None else _beside(sink.current, table, decode, settings)
    return check.found(prefix, lateness=lateness, rows=rows, differences=differences, faults=faults, notes=notes, beside=beside)


def _decoder(sink: CompactedTopic | AlertsTopic, settings: Settings) -> Decode:
    if not isinstance(sink, CompactedAvroTopic):
        return json_row
    from contract.registry.client import SchemaRegistry, avro_rows  # slow to import

    return avro_rows(SchemaRegistry(settings.registry))


def _compare(
    check: Check, prefix: Prefix, sink: CompactedTopic | AlertsTopic, found: Rows, decode: Decode
) -> tuple[Lateness | None, tuple[RowCounts, list[Difference]]]:
    query, settings = check.query, check.settings
    expectation = Expectation(check, prefix)
    try:
        lateness = expectation.lateness()
        expected = expectation.rows()
        tables = Tables(
            expected,
            own_rows(found, expected, sink.key) if isinstance(sink, AlertsTopic) else found,
            decode=decode,
            decode_expected=orjson.loads if isinstance(sink, CompactedAvroTopic) else json_row,
            expected_ahead=(lambda: expectation.rows(ahead=True)) if prefix.planned > prefix.committed else None,
            unknown_lateness=expectation.keys_of_unknown_lateness() if lateness and lateness.unknown_rows else frozenset(),
            is_cut=prefix.is_cut,
            newest_cut_ms=expectation.newest_cut_ms,
            growing=query.growing,
            kept_for=timedelta(seconds=durations.seconds(settings.result_retention, "STREAMGAUGE_RESULT_RETENTION")),
            session_gap=timedelta(seconds=durations.seconds(query.session_gap, "session_gap")) if query.session_gap else None,
            is_real_time=query.real_time is not None,
        )
        return lateness, tables.compare()
    finally:
        expectation.close()


def _beside(current: CompactedTopic, found: Rows, decode: Decode, settings: Settings) -> Beside:
    """Compares the rows of a new version with those in the topics of `current`, which readers see.

    found: the new version's rows. Of rows with windows, only those count whose windows both versions have begun and passed: between the
    later of the first windows and the earlier of the newest ones.
    """
    there = read_table(settings, ends_of(current.topics, settings))
    until = None
    windows = [spans for rows in (there, found) if (spans := [window for key in rows if (window := window_of(key))])]
    if len(windows) == 2:  # noqa: PLR2004 - both versions
        first = max(min(window.start for window in spans) for spans in windows)
        last = min(max(window.start for window in spans) for spans in windows)
        there, found = (
            {key: row for key, row in rows.items() if (window := window_of(key)) and first <= window.start and window.end <= last}
            for rows in (there, found)
        )
        until = utc(last)
    return Beside(current.place, until, *Tables(there, found, decode=decode, decode_expected=decode).compare())
