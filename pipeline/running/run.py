"""Starts, follows and stops a query on Spark."""

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from contract.checkpoints.contents import Checkpoint, Offsets, Partition, batch_of, nested, offsets_of
from contract.checkpoints.names import others_of_query
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.recent_records import last_records
from infrastructure.kafka.topic_ends import first_and_end_offsets
from infrastructure.registry.avro_reader import schema_id_of
from infrastructure.settings import Settings
from infrastructure.storage.paths import names_in
from pipeline.checkpoint.journal import BatchJournal
from pipeline.checkpoint.use import check_parameters, check_reset, check_source
from pipeline.formats.confluent_avro import WriterSchemas, schema_ids
from pipeline.formats.schema_book import SchemaBook
from pipeline.monitoring.failures import records_gone
from pipeline.monitoring.progress import ProgressToKafka
from pipeline.query import Query, start_stream, topic_read_by_partition
from pipeline.sinks.sink import out_of_step
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import KafkaTopic, check_timestamps, records_from
from pipeline.spark.errors import SparkFailure
from pipeline.spark.session import is_alive

NEWEST_RECORDS = 1_000
"""A query fetches the schemas of so many records of each partition before it starts."""


class RecountLosesRows(StreamgaugeError):  # noqa: N818 - it names what would happen
    """A recount would replace rows by rows that lack the records that the source no longer has."""

    def __init__(self, query: Query, sink: CompactedTopic, gone: int) -> None:
        ways_out = f"give them up (`streamgauge reset {query.name}`)"
        if sink.current is None:
            ways_out = f"leave them and count into a topic of its own (`streamgauge run {query.name}.v{query.version}`), or {ways_out}"
        super().__init__(
            f"topic {query.source.name} no longer has its first {gone} records, and {sink.place} has rows that counted them: a recount would "
            f"replace these by rows that lack them; {ways_out}"
        )


class SchemaAwaited(StreamgaugeError):  # noqa: N818
    """There is nothing to read yet: no record, and no schema to read one by. A run now would fail at the first record, to fetch its schema."""

    def __init__(self, query: Query, subject: str) -> None:
        super().__init__(f"topic {query.source.name} is empty, and the schema registry has no schema of subject {subject}")


class Run:
    """A run that Spark has started.

    has_begun: whether it has completed a batch or found that there is nothing to do. catches_up: it ends when it has processed what was there.
    """

    def __init__(
        self,
        running: StreamingQuery,
        journal: BatchJournal | None,
        schemas: WriterSchemas | None,
        assigned: Collection[Partition] | None = None,
        *,
        catches_up: bool = False,
    ) -> None:
        """schemas: with which it decodes values. assigned: the partitions that it reads; None if Spark looks for new ones."""
        self.running, self.schemas, self.has_begun, self.catches_up = running, schemas, False, catches_up
        self._assigned = assigned
        self._journal = journal

    def call_at_end(self, ended: Callable[[], None]) -> None:
        """Calls `ended` in another thread when the run, or Spark's JVM, has ended."""

        def wait() -> None:
            with contextlib.suppress(Exception):  # `ended` reads the error itself
                self.running.awaitTermination()
            ended()

        threading.Thread(target=wait, name="run", daemon=True).start()

    @property
    def failure(self) -> str | None:
        """The text of the exception that ended the run. None if there was none."""
        error = self.running.exception()
        return None if error is None else str(error)

    def reads(self, partitions: Collection[Partition]) -> bool:
        return self._assigned is None or set(partitions) <= set(self._assigned)

    @property
    def last_batch(self) -> int:
        """The number of the last completed batch; -1 before the first of this run."""
        progress = self.running.lastProgress
        return -1 if progress is None else progress["batchId"]

    @property
    def is_in_batch(self) -> bool:
        return bool(self.running.isActive and self.running.status["isTriggerActive"] and self.running.status["isDataAvailable"])

    def on_progress(self, progress: dict[str, Any] | None) -> None:
        """Handles Spark's report: the progress of a batch, or None when there is nothing to do."""
        self.has_begun = True
        if progress is not None and self._journal is not None:
            self._journal.add(batch_of(progress))

    def stop(self) -> bool:
        """Stops the run. Returns whether it ended in time."""
        try:
            self.running.stop()
        except SparkFailure:  # its thread hangs, most likely because Kafka cannot be reached
            return False
        return True


class Starter:
    """Starts the runs of all queries."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        progress: ProgressToKafka,
        say: Callable[[str], None],
        *,
        once: bool,
    ) -> None:
        """once: runs process the available records and end."""
        self._spark, self._settings, self._progress, self._say, self._once = spark, settings, progress, say, once
        self._latest: dict[tuple[str, tuple[tuple[str, str], ...]], Mapping[Partition, int]] = {}

    @cached_property
    def _schemas(self) -> SchemaBook:
        return SchemaBook.of_registry(self._settings)

    def start(self, query: Query, unknown_ids: Sequence[int] = (), *, has_caught_up: bool = False) -> Run:
        """Starts a run of `query` from its checkpoint. unknown_ids: schema ids to fetch from the registry first, the most important first.

        In real-time mode, a query with a watermark that has run before first catches up, unless `has_caught_up`: a run processes in one
        batch all that an earlier one may have written rows of (docs/explained/checkpoints.md).

        Raises KafkaUnavailable, RegistryUnavailable or StoreUnavailable when that server cannot be reached, BatchesRefused when a result topic would refuse its batches, TopicMissing when a source or result topic is
        missing, SchemaAwaited when there is nothing to read yet, another StreamgaugeError when user action is required, and anything that the query's own functions raise.
        """
        place, source = query.checkpoint_name.place(self._settings), query.source
        check_reset(query.name, self._settings)
        topic_ends = self.check_source(query)
        partitions = list(topic_ends)
        check_parameters(place, query.parameters)
        checkpoint = Checkpoint(place.folder)
        checkpoint.check()
        settings = self._settings if checkpoint.planned else self._with_fixed_start(query, topic_ends)
        schemas = None
        if query.subject is not None:
            # With ends from before: a schema is registered before its first record is written.
            ends_by_number = {number: end for (_, number), end in topic_ends.items()}
            self._schemas.learn(query.subject, [*unknown_ids, *self._newest_ids(query)], ends_by_number)
            schemas = self._schemas.of(query.subject)
            if not any(topic_ends.values()) and not schemas.by_id and not self._once:
                self._schemas.forget(query.subject)
                raise SchemaAwaited(query, query.subject.name)
        self._check_sink(query, checkpoint)
        recount = "" if checkpoint.planned else self._checked_recount(query)
        journal = None
        if query.watermark is not None:
            journal = BatchJournal.followed(place, self._settings, partitions if isinstance(source, KafkaTopic) else ())
        committed = checkpoint.batch(checkpoint.last_committed)
        ends = committed.ends if committed and isinstance(source, KafkaTopic) else {}
        if self._settings.fail_on_data_loss:
            _check_ends(query, ends, topic_ends)
        in_real_time = query.real_time is not None and not self._once
        catches_up = in_real_time and query.watermark is not None and not has_caught_up and checkpoint.query_id is not None
        self._progress.resumes_at(query.name, ends, partitions if in_real_time and not catches_up else (), catches_up=catches_up)
        if isinstance(source, KafkaTopic) and (committed or self._settings.starting_offsets == "earliest"):
            check_timestamps(self._settings, {**dict.fromkeys(partitions, 0), **ends})
        running = start_stream(query, self._spark, settings, partitions, schemas, once=self._once or catches_up)
        if recount:
            self._say(recount)
        assigned = partitions if topic_read_by_partition(query) else None
        return Run(running, journal, schemas, assigned, catches_up=catches_up)

    def check_source(self, query: Query) -> Offsets:
        """As `_ends`. Raises StreamgaugeError if the query has read another source, such as a topic that was recreated since."""
        ends = self._ends(query)
        check_source(query.checkpoint_name.place(self._settings), query.source.ids(list(ends), self._settings), self._settings)
        return ends

    def _ends(self, query: Query) -> Offsets:
        """The end offset of each partition of the source; 0 for files. Raises KafkaUnavailable also if a partition has no leader."""
        partitions = query.source.partitions(self._settings)
        if not isinstance(query.source, KafkaTopic):
            return dict.fromkeys(partitions, 0)
        return {partition: end for partition, (_, end) in first_and_end_offsets(self._settings.kafka, partitions).items()}

    def _with_fixed_start(self, query: Query, topic_ends: Offsets) -> Settings:
        """The settings, with "latest" replaced by the end offsets at the first start of the query on these topics in this process.

        Otherwise a query that fails before its first checkpoint, or waits for its schema, would skip what came meanwhile.
        """
        if self._settings.starting_offsets != "latest" or not isinstance(query.source, KafkaTopic):
            return self._settings
        key = query.name, tuple(query.source.ids(list(topic_ends), self._settings).items())  # a topic that is recreated has another id
        latest = self._latest.setdefault(key, topic_ends)
        starts = {partition: latest.get(partition, 0) for partition in topic_ends}
        return replace(self._settings, starting_offsets=json.dumps(nested(starts)))

    def _newest_ids(self, query: Query) -> list[int]:
        """The schema ids of the newest records, the most frequent first. A run that does not know one of them soon fails."""
        try:
            newest = last_records(
                self._settings.kafka, query.source.name, NEWEST_RECORDS, lambda record: schema_id_of(record.value() or b"")
            )
        except StreamgaugeError:  # for example, Kafka deletes the records meanwhile; the run then finds the ids itself
            return []
        # Ids are positive, so one with the highest bit set cannot be registered.
        return [number for number, _ in Counter(newest).most_common() if number is not None and number < 2**31]

    def _check_sink(self, query: Query, checkpoint: Checkpoint) -> None:
        """Raises StreamgaugeError when the sink does not hold exactly the batches of the checkpoint."""
        in_sink = query.sink.last_batch(self._spark, self._settings, checkpoint.query_id)
        committed = checkpoint.last_committed
        # The rows of a batch that was planned but not committed may be in the sink, which then skips it.
        if in_sink not in {None, committed, max(checkpoint.planned, default=-1)}:
            raise StreamgaugeError(out_of_step(query.name, query.sink.place, in_sink, committed))

    def _checked_recount(self, query: Query) -> str:
        """A line on what a run from a new checkpoint recounts; empty if the query never ran.

        Raises RecountLosesRows if that would replace rows of records that Kafka no longer has, by rows that lack these records.
        """
        source, sink, name = query.source, query.sink, query.checkpoint_name
        if isinstance(source, KafkaTopic) and isinstance(sink, CompactedTopic):
            gone = source.records_gone(self._settings)
            if gone and sink.deletions(self._settings):
                raise RecountLosesRows(query, sink, gone)
        other_checkpoints = [place.name for place in others_of_query(name, self._settings)]
        older = [other for other in other_checkpoints if other.mode == name.mode]
        if not other_checkpoints:
            return ""
        previous = older or other_checkpoints
        reason = f"as version {query.version}" if older else f"in mode {name.mode}"
        checkpoints = f"checkpoint {previous[0]} is kept" if len(previous) == 1 else f"checkpoints {', '.join(map(str, previous))} are kept"
        return f"{query.name} recounts from the start {reason}; {checkpoints}"

    def ask_servers(self, query: Query) -> None:
        """Raises KafkaUnavailable or StoreUnavailable when a server of `query` cannot be reached, and other StreamgaugeErrors as `start` does."""
        self._ends(query)
        _ = Checkpoint(query.checkpoint_name.folder(self._settings)).planned
        names_in(self._settings.lake)

    def new_schema_ids(self, query: Query, failed: Run, named: Collection[int]) -> list[int]:
        """The schema ids for which the next start asks the registry. named: those in the failure of the run.

        The others are of the records that it has not read, so that one restart covers all of them, if these can be read. A batch
        in real-time mode has no planned end: it goes to the end of the topic.
        """
        if query.subject is None or failed.schemas is None:
            return []
        ids = [*named, *self._unread_schema_ids(query, failed, failed.schemas)]
        self._schemas.doubt(query.subject, failed.schemas, ids)
        return ids

    def _unread_schema_ids(self, query: Query, failed: Run, schemas: WriterSchemas) -> list[int]:
        try:
            error = failed.running._jsq.exception().get()
            first = self._with_fixed_start(query, self._ends(query)).starting_offsets
            is_planned = self._once or failed.catches_up or not query.real_time
            start, end = _offsets(error.startOffset()) or first, (is_planned and _offsets(error.endOffset())) or "latest"
            return schema_ids(records_from(self._spark, self._settings, {"subscribe": query.source.name}, start, end), schemas)
        except (*SparkFailure, StreamgaugeError):  # e.g. Kafka cannot be reached; the one known id suffices for a restart
            return []

    def has_new_schemas(self, query: Query, run: Run) -> bool:
        """Whether the registry now has schemas that it lacked when the run started, so that a restart can read more."""
        return query.subject is not None and run.schemas is not None and self._schemas.is_outdated(query.subject, run.schemas)

    @property
    def is_alive(self) -> bool:
        """Whether Spark's JVM is running."""
        return is_alive(self._spark)


def _check_ends(query: Query, read_to: Offsets, topic_ends: Offsets) -> None:
    """Raises StreamgaugeError if a partition ends before the offset that the query has read to, as after a broker's power failure."""
    if lost := sorted(partition for partition, offset in read_to.items() if offset > topic_ends.get(partition, offset)):
        where = ", ".join(
            f"{topic}-{number} ends at {topic_ends[topic, number]:,} and was read to {read_to[topic, number]:,}" for topic, number in lost
        )
        raise StreamgaugeError(records_gone(query.name, f"Kafka has lost records that it had read: {where}"))


def _offsets(of_sources: str) -> str | None:
    """The offsets of all sources in JSON, from Spark's text: [{"topic":{"0":5}}, ...]; None for [-], before the first batch."""
    try:
        return json.dumps(
            nested({partition: offset for source in json.loads(of_sources) for partition, offset in offsets_of(source).items()})
        )
    except ValueError:
        return None
