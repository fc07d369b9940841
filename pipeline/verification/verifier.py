"""Verifies queries one after another on one Spark session. The package's docstring explains why the result is exact."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property

import orjson
from pyspark.sql import SparkSession

from contract.errors import StreamgaugeError
from contract.kafka.tombstones import write_rows
from contract.settings import Settings
from contract.storage.checkpoint_names import others_of_query
from contract.text import utc_text
from contract.topics import VERDICTS
from pipeline.checkpoint.contents import Checkpoint
from pipeline.database.sink import DatabaseTable
from pipeline.formats.confluent_avro import WriterSchemas, schema_ids, unknown_ids
from pipeline.formats.schema_book import SchemaBook
from pipeline.ingest.upsert import UpsertTable
from pipeline.query import Query
from pipeline.running.failures import DATA_LOSS
from pipeline.sinks.archives import Archive
from pipeline.sinks.topics import AlertsTopic, CompactedTopic, DeadLetterTopic
from pipeline.spark.errors import SparkFailure, first_line
from pipeline.verification import by_origin, compacted_topic, database_table, upserts
from pipeline.verification.check import Check
from pipeline.verification.outcome import Outcome

ATTEMPTS = 3


class Verifier:
    """Compares what queries have committed with what their sinks hold."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark, self.settings = spark, settings

    @cached_property
    def _schemas(self) -> SchemaBook:
        return SchemaBook.of_registry(self.settings)

    def verify(self, query: Query) -> Outcome:
        """Verifies `query` in its version and mode. A StreamgaugeError becomes the outcome's `problem`."""
        outcome = Outcome(query.name, query.sink.place, query.source.name, notes=_other_checkpoints(query, self.settings))
        if not Checkpoint(query.checkpoint_name.folder(self.settings)).planned:
            return replace(outcome, has_run=False)
        try:
            return self._with_patience(query, outcome)
        except StreamgaugeError as error:
            return replace(outcome, problem=str(error))
        except SparkFailure as error:
            return replace(outcome, problem=f"Spark failed: {first_line(error)} (the whole of it is in {self.settings.logs / 'spark.log'})")

    def _with_patience(self, query: Query, outcome: Outcome, attempts: int = ATTEMPTS) -> Outcome:
        """Starts over when unknown schemas appear or retention removes records before they are read."""
        schemas = None if query.subject is None else self._schemas.of(query.subject)
        check = Check(self.spark, self.settings, query, schemas, outcome)
        try:
            return _verified(check)
        except SparkFailure as error:
            ids = unknown_ids(str(error))
            is_passing = ids or any(sign in str(error) for sign in (*DATA_LOSS, "OffsetOutOfRange"))
            if attempts == 1 or not is_passing:
                raise
            if query.subject is not None and schemas is not None and ids:
                self._schemas.learn(query.subject, [*ids, *_new_ids(check, schemas)])
        return self._with_patience(query, outcome, attempts - 1)


def _verified(check: Check) -> Outcome:
    match check.query.sink:
        case CompactedTopic() | AlertsTopic() as sink:
            return compacted_topic.verify(check, sink)
        case DeadLetterTopic() as sink:
            return by_origin.verify_letters(check, sink)
        case Archive() as sink:
            return by_origin.verify_archive(check, sink)
        case UpsertTable() as sink:
            return upserts.verify(check, sink)
        case DatabaseTable() as sink:
            return database_table.verify(check, sink)
    msg = f"{check.query.sink.place} cannot be verified"
    raise StreamgaugeError(msg)


def _new_ids(check: Check, schemas: WriterSchemas) -> list[int]:
    """The schema ids of all records that the query has read or is about to read, without those in `schemas`."""
    checkpoint = Checkpoint(check.place.folder)
    prefix = check.source.prefix(checkpoint.last_committed, max([*checkpoint.planned, checkpoint.last_committed]))
    return schema_ids(check.source.between(prefix.starts, prefix.planned_ends), schemas)


def raise_if_nothing_to_verify(queries: Sequence[Query], settings: Settings, *, are_named: bool) -> None:
    """Raises StreamgaugeError when none of `queries` has run or, if they were named explicitly, when one of them has not."""
    have_not = [query for query in queries if not Checkpoint(query.checkpoint_name.folder(settings)).planned]
    if have_not and (are_named or len(have_not) == len(queries)):
        msg = f"{have_not[0].checkpoint_name} has not run with STREAMGAUGE_HOME {settings.home}: there is nothing to compare. Run the query first, with `streamgauge run`"
        raise StreamgaugeError(msg)


def _other_checkpoints(query: Query, settings: Settings) -> list[str]:
    """A line if the query has also run in another mode or version with the same sink."""
    others = [str(place.name) for place in others_of_query(query.checkpoint_name, settings) if Checkpoint(place.folder).last_committed >= 0]
    return [f"it has also run as {', '.join(others)}, into the same {query.sink.place}"] if others else []


def keep_verdicts(settings: Settings, outcomes: Sequence[Outcome]) -> None:
    """Writes one record per query that has run to topic `verdicts`, where the dashboard finds it.

    Raises StreamgaugeError when Kafka does not take them.
    """
    names = ("query", "verdict", "sink", "batch", "records", "problem")
    found = [outcome for outcome in outcomes if outcome.has_run]
    common = {"time": utc_text(datetime.now(UTC))}
    rows = [common | {name: getattr(outcome, name) for name in names} | {"rows": outcome.rows.by_kind} for outcome in found]
    write_rows(settings.kafka, VERDICTS.name, {row["query"].encode(): orjson.dumps(row) for row in rows})
