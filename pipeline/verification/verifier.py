"""Verifies queries one after another on one Spark session. The package's docstring explains why the result is exact."""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from contract.errors import StreamgaugeError
from contract.registry.client import SchemaRegistry
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace, others_of_query
from pipeline.checkpoint.contents import Checkpoint
from pipeline.database.sink import DatabaseTable
from pipeline.formats.confluent_avro import schema_ids, unknown_ids
from pipeline.formats.schema_book import SchemaBook
from pipeline.ingest.upsert import UpsertTable
from pipeline.query import Query
from pipeline.running.failures import DATA_LOSS
from pipeline.sinks.archives import Archive
from pipeline.sinks.topics import AlertsTopic, CompactedTopic, DeadLetterTopic
from pipeline.sources.kafka import records_between
from pipeline.spark.errors import SparkFailure
from pipeline.verification import by_origin, compacted_topic, database_table, upserts
from pipeline.verification.check import Check
from pipeline.verification.outcome import Outcome
from pipeline.verification.prefix import prefix_of

ATTEMPTS = 3


class Verifier:
    """Compares what queries have committed with what their sinks hold."""

    def __init__(self, spark: SparkSession, settings: Settings) -> None:
        self.spark, self.settings = spark, settings
        self._registry = SchemaRegistry(settings.registry)
        self._schemas = SchemaBook(self._registry)

    def verify(self, query: Query) -> Outcome:
        """Verifies `query` in its version and mode. A StreamgaugeError becomes the outcome's `problem`."""
        outcome = Outcome(query.name, query.sink.place, query.source.name, notes=_other_checkpoints(query, self.settings))
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
        """Starts over when unknown schemas appear or retention removes records before they are read."""
        for _ in range(ATTEMPTS - 1):
            try:
                return self._check(query, outcome)
            except SparkFailure as error:
                ids = unknown_ids(str(error))
                if query.subject is not None and ids:
                    self._schemas.learn(query.subject, frozenset(ids | self._ids_of(place)))
                elif not any(sign in str(error) for sign in (*DATA_LOSS, "OffsetOutOfRange")):
                    raise
        return self._check(query, outcome)

    def _check(self, query: Query, outcome: Outcome) -> Outcome:
        schemas = None if query.subject is None else self._schemas.of(query.subject)
        check = Check(self.spark, self.settings, self._registry, query, schemas, outcome)
        match query.sink:
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
        msg = f"{query.sink.place} cannot be verified"
        raise StreamgaugeError(msg)

    def _ids_of(self, place: CheckpointPlace) -> set[int]:
        checkpoint = Checkpoint(place.folder)
        prefix = prefix_of(place, self.settings, checkpoint.last_committed, max([*checkpoint.planned, checkpoint.last_committed]))
        return schema_ids(records_between(self.spark, self.settings, prefix.starts, prefix.planned_ends))


def raise_if_nothing_to_verify(queries: Sequence[Query], settings: Settings, *, are_named: bool) -> None:
    """Raises StreamgaugeError when none of `queries` has run or, if they were named explicitly, when one of them has not."""
    have_not = [query for query in queries if not Checkpoint(query.checkpoint_name.folder(settings)).planned]
    if have_not and (are_named or len(have_not) == len(queries)):
        one = have_not[0]
        what = f"query {one.name} has not run in mode {one.mode}" if are_named else "no query has run"
        other = f"; {notes[0]}" if are_named and (notes := _other_checkpoints(one, settings)) else ""
        msg = (
            f"{what} with STREAMGAUGE_HOME {settings.home}: there is nothing to compare{other}. Run the query first, with `streamgauge run`"
        )
        raise StreamgaugeError(msg)


def _other_checkpoints(query: Query, settings: Settings) -> list[str]:
    """A line if the query has also run in another mode or version with the same sink."""
    others = [place for place in others_of_query(query.checkpoint_name, settings) if Checkpoint(place.folder).last_committed >= 0]
    names = [str(place.name).removeprefix(f"{query.name}-") for place in others]
    return (
        [f"it has also run as {', '.join(names)}, into the same {query.sink.place}; compared is v{query.version}-{query.mode}"]
        if names
        else []
    )
