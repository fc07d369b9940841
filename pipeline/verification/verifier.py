"""Verifies queries, one after the other, on one Spark session. The package's docstring says why the answer can be relied on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contract import durations
from contract.errors import StreamgaugeError
from contract.registry.client import SchemaRegistry, avro_rows
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace, others_of_query
from pipeline.checkpoint.contents import Checkpoint, Offsets, Partition
from pipeline.formats.confluent_avro import WriterSchemas, schema_ids, unknown_ids
from pipeline.formats.schema_book import SchemaBook
from pipeline.ingest.location import Location
from pipeline.ingest.upsert import UpsertTable
from pipeline.query import Query
from pipeline.running.failures import DATA_LOSS
from pipeline.sinks.sinks import CompactedAvroTopic, CompactedTopic, DeadLetterTopic, DeltaArchive, ParquetArchive
from pipeline.sources.kafka import first_and_end_offsets, records_between, source_partitions
from pipeline.verification.archive import Archive, SparkFailure, is_of_files
from pipeline.verification.expectation import Expectation
from pipeline.verification.origins import CONTENT, ORIGIN, Origin, OriginComparison, compare, letters_by_origin, rows_by_origin
from pipeline.verification.outcome import MOST_DIFFERENCES, Difference, Kind, Lateness, Outcome
from pipeline.verification.prefix import Prefix, looked_at, newest_cut_ms, prefix_of
from pipeline.verification.source import Taken, taken_by
from pipeline.verification.tables import Comparison, Excuses, Tables, json_row
from pipeline.verification.topic_table import TopicTable, read_table
from pipeline.verification.upserts import HeldTable

ATTEMPTS = 3
T = TypeVar("T")


class Verifier:
    """Compares what queries have committed with what their sinks hold."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark, self.settings = spark, settings
        self._registry = SchemaRegistry(settings.registry)
        self._schemas = SchemaBook(self._registry)

    def verify(self, query: Query) -> Outcome:
        """What was found of `query`, in its version and mode. A StreamgaugeError on the way is its `problem`."""
        outcome = Outcome(query.name, _sink_name(query), query.source.name, notes=_other_checkpoints(query, self.settings))
        place = query.checkpoint_name.place(self.settings)
        if not Checkpoint(place.folder).planned:
            return replace(outcome, has_run=False)
        try:
            return self._with_patience(query, place, outcome)
        except StreamgaugeError as error:
            return replace(outcome, problem=str(error))
        except SparkFailure as error:
            first = next(
                (line for line in str(error).splitlines() if line.strip() and "error occurred while calling" not in line), "no reason given"
            )
            return replace(outcome, problem=f"Spark failed: {first} (the whole of it is in {self.settings.logs / 'spark.log'})")

    def _with_patience(self, query: Query, place: CheckpointPlace, outcome: Outcome) -> Outcome:
        """Begins anew when schemas turn up that were not known, or retention cuts records that were about to be read."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._check(query, place, outcome)
            except SparkFailure as error:
                ids = unknown_ids(str(error))
                if query.subject is not None and ids:
                    self._schemas.learn(query.subject, frozenset(ids | self._ids_of(place)))
                elif not any(sign in str(error) for sign in (*DATA_LOSS, "OffsetOutOfRange")):
                    raise
        return self._check(query, place, outcome)

    def _check(self, query: Query, place: CheckpointPlace, outcome: Outcome) -> Outcome:
        schemas = None if query.subject is None else self._schemas.of(query.subject)
        match query.sink:
            case CompactedTopic() | CompactedAvroTopic():
                return self._check_table(query, place, schemas, outcome)
            case ParquetArchive():
                return self._check_archive(query, place, schemas, outcome)
            case DeltaArchive():
                return self._check_delta_archive(query, place, schemas, outcome)
            case DeadLetterTopic():
                return self._check_letters(query, place, schemas, outcome)
            case UpsertTable():
                return self._check_upserts(query.sink.location(self.settings), place, outcome)
        msg = f"there is no way yet to verify what {type(query.sink).__name__} holds"
        raise StreamgaugeError(msg)

    # --- compacted topics

    def _check_table(self, query: Query, place: CheckpointPlace, schemas: WriterSchemas | None, outcome: Outcome) -> Outcome:
        taken = taken_by(query, self.spark, self.settings)
        for attempt in range(ATTEMPTS):
            committed, planned, limits = looked_at(place, partial(self._ends, query.sink.topic.name))  # type: ignore[attr-defined]
            found = read_table(self.settings, limits)
            prefix = taken.prefix(committed, planned)
            result, comparison = self._compare_table(query, place, taken, prefix, schemas, found)
            if not comparison.unsettled or attempt == ATTEMPTS - 1:
                break
        faults = [f"{found.keyless} records without a key, which belong to no row"] if found.keyless else []
        if result is not None and result.wrongly_late_events:
            faults.append(
                f"{result.wrongly_late_events:,} events count nowhere, though they came in time on their own partition: the watermark was ahead of every event that counts; recount with `streamgauge reset {query.name}`"
            )
        return replace(
            outcome,
            batch=committed,
            records=prefix.records,
            cuts=prefix.cuts,
            lateness=result,
            rows=comparison.counts,
            differences=comparison.differences,
            faults=faults,
            notes=[*outcome.notes, *prefix.notes, *_gaps(prefix, result)],
        )

    def _compare_table(
        self, query: Query, place: CheckpointPlace, taken: Taken, prefix: Prefix, schemas: WriterSchemas | None, found: TopicTable
    ) -> tuple[Lateness | None, Comparison]:
        cut_until_ms = newest_cut_ms(prefix, place, self.spark, query, self.settings)
        expectation = Expectation(
            query, taken.between, prefix, schemas, delay=query.watermark or self.settings.watermark, cut_until_ms=cut_until_ms
        )
        try:
            lateness = expectation.lateness()
            excuses = Excuses(
                untold=expectation.untold_keys() if lateness and lateness.untold_rows else frozenset(),
                is_cut=prefix.is_cut,
                newest_cut_ms=cut_until_ms,
                growing=query.growing,
                kept_for=timedelta(seconds=durations.seconds(self.settings.result_retention, "STREAMGAUGE_RESULT_RETENTION")),
            )
            is_avro = isinstance(query.sink, CompactedAvroTopic)
            tables = Tables(
                expectation.rows(),
                found.values,
                decode=avro_rows(self._registry) if is_avro else json_row,
                decode_expected=orjson.loads if is_avro else json_row,
                expected_ahead=(lambda: expectation.rows(ahead=True)) if prefix.planned > prefix.committed else None,
                newer=found.newer,
            )
            return lateness, tables.compare(excuses)
        finally:
            expectation.close()

    # --- sinks whose rows say which record they come from

    def _check_archive(self, query: Query, place: CheckpointPlace, schemas: WriterSchemas | None, outcome: Outcome) -> Outcome:
        sink, taken = query.sink, taken_by(query, self.spark, self.settings)
        prefix = _committed(taken, place)
        if not isinstance(sink, ParquetArchive):
            raise TypeError(sink)

        def rows(starts: Offsets, ends: Offsets) -> DataFrame:
            return query.result(taken.between(starts, ends), schemas)

        def expected(starts: Offsets, ends: Offsets) -> DataFrame:
            return rows_by_origin(rows(starts, ends), sink.origin_prefix)

        archive = Archive(self.spark, Path(str(sink.folder(self.settings))), rows(prefix.starts, prefix.ends).schema)
        faults = archive.faults("gone", archive.gone())
        found = rows_by_origin(archive.rows(), sink.origin_prefix)
        try:
            comparison = compare(expected(prefix.starts, prefix.ends), found, prefix)
        except SparkFailure as error:
            if not is_of_files(str(error)):
                raise
            faults += archive.faults("not readable", archive.unreadable(str(error)))
            found = rows_by_origin(archive.rows(but_unreadable=True), sink.origin_prefix)
            comparison = compare(expected(prefix.starts, prefix.ends), found, prefix)
        differences = self._differences(comparison, expected, found)
        return self._with_comparison(outcome, prefix, comparison, differences, [*faults, *taken.strangers(found)])

    def _check_delta_archive(self, query: Query, place: CheckpointPlace, schemas: WriterSchemas | None, outcome: Outcome) -> Outcome:
        sink, taken = query.sink, taken_by(query, self.spark, self.settings)
        prefix = _committed(taken, place)
        if not isinstance(sink, DeltaArchive):
            raise TypeError(sink)

        def expected(starts: Offsets, ends: Offsets) -> DataFrame:
            return rows_by_origin(query.result(taken.between(starts, ends), schemas), sink.origin_prefix)

        found = rows_by_origin(self.spark.read.format("delta").load(str(sink.folder(self.settings))), sink.origin_prefix)
        comparison = compare(expected(prefix.starts, prefix.ends), found, prefix)
        return self._with_comparison(outcome, prefix, comparison, self._differences(comparison, expected, found), taken.strangers(found))

    def _check_letters(self, query: Query, place: CheckpointPlace, schemas: WriterSchemas | None, outcome: Outcome) -> Outcome:
        taken = taken_by(query, self.spark, self.settings)
        prefix = _committed(taken, place)

        def expected(starts: Offsets, ends: Offsets) -> DataFrame:
            return letters_by_origin(query.result(taken.between(starts, ends), schemas), reader)

        topic, reader = query.sink.topic.name, query.sink.reader  # type: ignore[attr-defined]
        bounds = first_and_end_offsets(self.settings, source_partitions(self.settings, topic))
        kept, ends = ({which: bound[edge] for which, bound in bounds.items()} for edge in (0, 1))
        sources = sorted({of for of, _ in prefix.ends})
        letters = records_between(self.spark, self.settings, kept, ends, with_headers=True)
        # A batch that ran again has written its letters again; two letters of one record that differ stay two.
        found = letters_by_origin(letters, reader).where(F.col("topic").isin(sources)).distinct()
        kept_from: dict[Partition, int] | None = None
        if any(kept.values()):
            oldest = found.groupBy("topic", "partition").agg(F.min("offset").alias("offset")).collect()
            kept_from = {(row.topic, row.partition): row.offset for row in oldest}
        comparison = compare(expected(prefix.starts, prefix.ends), found, prefix, kept_from)
        notes = (
            [f"topic {topic} has lost its oldest letters: those of records before the oldest one left are not checkable"]
            if kept_from is not None
            else []
        )
        outcome = replace(outcome, notes=[*outcome.notes, *notes])
        return self._with_comparison(outcome, prefix, comparison, self._differences(comparison, expected, found), taken.strangers(found))

    # --- tables that hold the newest record of each key

    def _check_upserts(self, location: Location, place: CheckpointPlace, outcome: Outcome) -> Outcome:
        table = HeldTable(self.spark, self.settings, location)
        committed, planned, version = looked_at(place, table.version)
        prefix = prefix_of(place, self.settings, committed, planned)
        comparison = table.compare(version, prefix, prefix.ends)
        if comparison.counts.wrong and planned > committed:
            ahead = table.compare(version, prefix, prefix.planned_ends)
            comparison = comparison if ahead.counts.wrong else ahead
        return replace(
            outcome,
            batch=committed,
            records=prefix.records,
            cuts=prefix.cuts,
            rows=comparison.counts,
            differences=comparison.differences,
            faults=comparison.faults,
        )

    def _with_comparison(
        self, outcome: Outcome, prefix: Prefix, comparison: OriginComparison, differences: list[Difference], faults: list[str]
    ) -> Outcome:
        return replace(
            outcome,
            batch=prefix.committed,
            records=prefix.records,
            cuts=prefix.cuts,
            rows=comparison.counts,
            differences=differences,
            faults=faults,
            notes=[*outcome.notes, *prefix.notes],
        )

    def _differences(
        self, comparison: OriginComparison, expected: Callable[[Offsets, Offsets], DataFrame], found: DataFrame
    ) -> list[Difference]:
        """The rows of the records that differ, read again: those records only."""
        differences = []
        for origin in comparison.where:
            which = (origin.topic, origin.partition)
            should_be = _contents(expected({which: origin.offset}, {which: origin.offset + 1}))
            are = _contents(found.where(_is_of(origin)))
            lacking, more = _without(should_be, are), _without(are, should_be)
            where = f"{origin.topic}-{origin.partition} offset {origin.offset}"
            for index in range(max(len(lacking), len(more))):
                one, other = (rows[index] if index < len(rows) else None for rows in (lacking, more))
                kind: Kind = "missing" if other is None else "extra" if one is None else "different"
                differences.append(Difference(kind, where, one, other))
        return differences[:MOST_DIFFERENCES]

    def _ends(self, topic: str) -> dict[Partition, int]:
        bounds = first_and_end_offsets(self.settings, source_partitions(self.settings, topic))
        return {which: end for which, (_, end) in bounds.items()}

    def _ids_of(self, place: CheckpointPlace) -> set[int]:
        checkpoint = Checkpoint(place.folder)
        prefix = prefix_of(place, self.settings, checkpoint.last_committed, max([*checkpoint.planned, checkpoint.last_committed]))
        return schema_ids(records_between(self.spark, self.settings, prefix.starts, prefix.planned_ends))


def raise_if_nothing_to_verify(queries: Sequence[Query], settings: Settings, *, are_named: bool) -> None:
    """Raises StreamgaugeError when none of `queries` has run, or, if they were asked for by name, when one has not."""
    have_not = [query for query in queries if not Checkpoint(query.checkpoint_name.folder(settings)).planned]
    if have_not and (are_named or len(have_not) == len(queries)):
        one = have_not[0]
        what = f"query {one.name} has not run in mode {one.mode}" if are_named else "no query has run"
        other = f"; {notes[0]}" if are_named and (notes := _other_checkpoints(one, settings)) else ""
        msg = f"{what} with STREAMGAUGE_HOME {settings.home}: there is nothing to compare{other}. Run it first, with `streamgauge run`"
        raise StreamgaugeError(msg)


def _committed(taken: Taken, place: CheckpointPlace) -> Prefix:
    committed = Checkpoint(place.folder).last_committed
    return taken.prefix(committed, committed)


def _gaps(prefix: Prefix, lateness: Lateness | None) -> list[str]:
    if lateness is None or not lateness.untold_rows:
        return []
    numbers = [-1, *(batch.number for batch in prefix.batches)]
    gaps = [(one + 1, other - 1) for one, other in pairwise(numbers) if other > one + 1]
    named_gaps = ", ".join(f"{one} to {other}" if one < other else f"{one}" for one, other in gaps[:3])
    return [
        f"batches {named_gaps} are not in the journal: of {lateness.untold_rows:,} rows it is not known whether they came too late, and results that they touch and that differ are not counted as wrong"
    ]


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


def _sink_name(query: Query) -> str:
    match query.sink:
        case ParquetArchive(path=path) | DeltaArchive(path=path):
            return f"lake/{path}"
        case CompactedTopic(topic=topic) | CompactedAvroTopic(topic=topic) | DeadLetterTopic(topic=topic):
            return f"topic {topic.name}"
    return type(query.sink).__name__


def _other_checkpoints(query: Query, settings: Settings) -> list[str]:
    """A line when the query has also run in another mode or version, into the same sink."""
    others = [place for place in others_of_query(query.checkpoint_name, settings) if Checkpoint(place.folder).last_committed >= 0]
    names = [str(place.name).removeprefix(f"{query.name}-") for place in others]
    return (
        [f"it has also run as {', '.join(names)}, into the same {_sink_name(query)}; compared is v{query.version}-{query.mode}"]
        if names
        else []
    )
