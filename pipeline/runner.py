"""Starts queries, all in the same way, and keeps each of them running whatever becomes of the others."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from filelock import FileLock
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.alerts import Alerts
from pipeline.checkpoint.contents import Checkpoint
from pipeline.checkpoint.journal import BatchJournals
from pipeline.checkpoint.owner import own
from pipeline.checkpoint.use import CheckpointUse, TopicCreatedAnew
from pipeline.confluent_avro import schema_ids, unknown_ids
from pipeline.failures import Remedy, diagnosis, records_gone
from pipeline.inputs import Input, input_of
from pipeline.measures import Failure, failure_of
from pipeline.progress import ProgressToKafka
from pipeline.query import Query
from pipeline.schema_book import SchemaBook
from pipeline.session import JVM_ERRORS, raise_if_jvm_gone
from pipeline.sources import records_from
from pipeline.supervisor import RestartPolicy
from streamgauge.errors import StreamgaugeError
from streamgauge.kafka_errors import KafkaAway, TopicMissing
from streamgauge.schema_registry import RegistryAway, SchemaRegistry
from streamgauge.settings import Settings
from streamgauge.storage import StoreAway

POLL_SECONDS = 0.1
FIRST_BATCH_SECONDS = 20
FINISH_BATCH_SECONDS = 10
KAFKA, REGISTRY, STORE = "Kafka", "the schema registry", "the object store"
AWAY_RETRY_SECONDS = 2
AWAY_SECONDS = 30
"""How long a run with --once waits for a Kafka, a schema registry or an object store that is away; one that goes on waits as long as it takes."""


@dataclass(frozen=True)
class RunOptions:
    """How queries are run, beyond what they are.

    once: take what is there and end. pattern: a regular expression of topics to read instead of the query's source.
    """

    once: bool = False
    pattern: str | None = None


@dataclass(frozen=True)
class Due:
    """A query that is to be started.

    not_before: of the monotonic clock. unknown_ids: schema ids to ask the registry for before. waits: what it needs is away.
    """

    not_before: float = 0
    unknown_ids: frozenset[int] = frozenset()
    waits: bool = False


class Runner:
    """Runs queries on one Spark session until they end, are given up, or a stop is requested: then it ends after the batches under way."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        options: RunOptions,
        say: Callable[[str], None] = lambda _: None,
        stop_requested: threading.Event | None = None,
    ) -> None:
        self.spark, self.settings, self.options, self.say = spark, settings, options, say
        self.stop_requested = stop_requested or threading.Event()
        self.queries: dict[str, Query] = {}
        self.running: dict[str, StreamingQuery] = {}
        self.given_up: dict[str, str] = {}
        self._due: dict[str, Due] = {}
        self._away_since: dict[str, float] = {}
        self._restarts = RestartPolicy(settings.restart_limit, settings.restart_seconds)
        self._schemas = SchemaBook(SchemaRegistry(settings.registry))
        self._in_use: list[tuple[CheckpointUse, FileLock]] = []
        self._journals = BatchJournals()

    def run(self, queries: Iterable[Query]) -> None:
        """Starts `queries` and keeps them running until they end or a stop is asked for; says what happens to each.

        A query that fails is started again from its checkpoint, and given up when that does not help; one that needs Kafka, the schema
        registry or the object store waits for them. The others go on meanwhile. Raises StreamgaugeError in the end if a query was given up,
        and at once if another process has one of them, or another owner all.
        """
        own(self.settings)
        self._alerts = Alerts(self.settings, self.say)
        self._progress = ProgressToKafka(self.settings, self.say)
        self.spark.streams.addListener(self._progress)
        try:
            for query in sorted(queries, key=lambda query: query.trigger_seconds):
                if self.stop_requested.is_set():
                    break
                self._take(query)
                self._start_due()
                # One after the other: cold and side by side they would take each other's cores, and the first row would come last.
                if self.options.once:
                    self._keep_running()
                else:
                    self._wait_for_first_batch(query.name)
                    # Now and not when all have started: what it has learned, such as an id that is no schema's, spares the next ones the same.
                    self._take_up_failures()
            self._keep_running()
        finally:
            with contextlib.suppress(*JVM_ERRORS):  # a JVM that has gone has taken the queries along
                self._stop_all()
                self._progress.close()
                self.spark.streams.removeListener(self._progress)
            self._alerts.close()
            for checkpoint, lock in self._in_use:
                checkpoint.unlock(lock)
        if self.given_up:
            raise StreamgaugeError(_told(self.given_up))

    def _take(self, query: Query) -> None:
        self.queries[query.name], self._due[query.name] = query, Due()
        checkpoint = self._checkpoint(query.name)
        jvm_pid = self.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        self._in_use.append((checkpoint, checkpoint.lock(jvm_pid)))

    def _note_version(self, query: Query) -> None:
        checkpoint = self._checkpoint(query.name)
        if checkpoint.is_new and (others := checkpoint.of_other_versions(self.settings)):
            self.say(f"{query.name} recounts from the start as version {query.version}; checkpoint {', '.join(others)} is kept")

    def _checkpoint(self, name: str) -> CheckpointUse:
        return CheckpointUse.of(self.queries[name], self.settings)

    def _input(self, name: str) -> Input:
        return input_of(self.queries[name], self.options.pattern)

    def _wait_for_first_batch(self, name: str) -> None:
        running, deadline = self.running.get(name), time.monotonic() + FIRST_BATCH_SECONDS
        while running and running.isActive and running.lastProgress is None and "Waiting for data" not in running.status["message"]:
            self._journals.catch_up()
            if self.stop_requested.wait(POLL_SECONDS) or time.monotonic() > deadline:
                return

    def _keep_running(self) -> None:
        while not self.stop_requested.wait(POLL_SECONDS):
            self._journals.catch_up()
            was_active = any(running.isActive for running in self.running.values())
            self._take_up_failures()
            is_started = self._start_due()
            if not (was_active or is_started or self._due):
                return

    def _take_up_failures(self) -> None:
        """Sees to each query that has failed since it was last looked at."""
        for name, running in list(self.running.items()):
            error = None if running.isActive else running.exception()
            if error is not None:
                self._after_failure(name, str(error))

    def _start_due(self) -> bool:
        """Starts the queries whose time has come; returns whether it was any."""
        is_started = False
        for name in [name for name, due in self._due.items() if due.not_before <= time.monotonic()]:
            query, due = self.queries[name], self._due[name]
            try:
                if query.subject is not None:
                    self._schemas.learn(query.subject, due.unknown_ids)
                if not due.waits:
                    self._note_version(query)
                self.running[name] = self._start(query)
            except (RegistryAway, KafkaAway, StoreAway) as away:
                self._postpone(name, away)
            except Exception as error:  # whatever one query's start fails with, it is no failure of the others
                raise_if_jvm_gone(self.spark, error)
                self._after_failed_start(name, error)
            else:
                del self._due[name]
                for what in (KAFKA, STORE):
                    self._away_since.pop(what, None)
                if query.subject is not None:
                    self._away_since.pop(REGISTRY, None)
                is_started = True
                self.say(f"{name} runs")
        return is_started

    def _after_failed_start(self, name: str, error: Exception) -> None:
        match error:
            case TopicMissing():
                self._restart(name, str(error), "")
            case TopicCreatedAnew():
                self._give_up(name, records_gone(str(error), self._checkpoint(name)))
            case StreamgaugeError():
                self._give_up(name, str(error))
            case _:
                failure = failure_of(_text_of(error))
                self._give_up(name, f"it cannot be started: {failure.error}", failure.detail)

    def _postpone(self, name: str, away: StreamgaugeError) -> None:
        what = REGISTRY if isinstance(away, RegistryAway) else STORE if isinstance(away, StoreAway) else KAFKA
        now = time.monotonic()
        if what not in self._away_since:
            self._alerts.send("warning", name, f"waits for {what}, and others may: {away}")
        since = self._away_since.setdefault(what, now)
        if not self._due[name].waits:
            self.say(f"{name} waits for {what} and tries again every {AWAY_RETRY_SECONDS} s: {away}")
        if self.options.once and now - since > AWAY_SECONDS:
            self._give_up(name, str(away))
        else:
            self._due[name] = replace(self._due[name], not_before=time.monotonic() + AWAY_RETRY_SECONDS, waits=True)

    def _after_failure(self, name: str, text: str) -> None:
        """Sees to it that the query is started again, or gives it up."""
        failed = self.running.pop(name)
        if ids := unknown_ids(text):
            self.say(
                f"{name} met a schema that it does not know (id {min(ids)}): it asks the registry and starts again from its checkpoint"
            )
            self._due[name] = Due(unknown_ids=frozenset(ids | self._ids_ahead(name, failed)))
            return
        found = diagnosis(text, self._checkpoint(name), self.settings)
        match found.remedy:
            case Remedy.RESTART_AT_ONCE:
                self.say(f"{name} starts again from its checkpoint: {found.what}")
                self._due[name] = Due()
            case Remedy.PERSON:
                self._give_up(name, found.what, failure_of(text).detail)
            case Remedy.RESTART:
                self._restart(name, found.what, failure_of(text).detail)

    def _restart(self, name: str, what: str, detail: str) -> None:
        try:
            self._input(name).partitions(self.settings)
            _ = self._checkpoint(name).is_new  # asks where it is
        except (KafkaAway, StoreAway):
            self._due[name] = Due()
            return
        except StreamgaugeError:
            pass
        wait = self._restarts.seconds_until_restart(name)
        if wait is None:
            limits = f"failed {self._restarts.limit + 1} times within {self._restarts.within_seconds:.0f} s"
            self._give_up(name, f"{limits}: {what} (the whole of it is in {self.settings.logs / 'spark.log'})", detail)
            return
        self.say(f"{name} starts again from its checkpoint in {wait:.0f} s: {what}")
        self._alerts.send("warning", name, f"failed and is started again: {what}", detail)
        self._due[name] = Due(time.monotonic() + wait)

    def _give_up(self, name: str, why: str, detail: str = "") -> None:
        self._due.pop(name, None)
        self.given_up[name] = why
        self.say(f"{name} is given up, the others go on: {why}" if len(self.queries) > 1 else f"{name} is given up")
        self._alerts.send("error", name, f"given up: {why}", detail)
        self._progress.given_up(name, Failure(why, detail or why))

    def _ids_ahead(self, name: str, failed: StreamingQuery) -> set[int]:
        """All schema ids from where the failed query stands to the topic's end: however many are unknown, one new start will do."""
        try:
            offsets = failed._jsq.exception().get().startOffset()
            start = offsets if offsets.startswith("{") else "earliest"
            return schema_ids(records_from(self.spark, self.settings, self.queries[name].source.name, start, pattern=self.options.pattern))
        except (PySparkException, Py4JJavaError):  # Kafka is away, say; the one id that is known will do for a start
            return set()

    def _start(self, query: Query) -> StreamingQuery:
        checkpoint, source = self._checkpoint(query.name), self._input(query.name)
        contents = Checkpoint(checkpoint.folder)
        schemas = None if query.subject is None else self._schemas.of(query.subject)
        partitions = source.partitions(self.settings)
        source.check(checkpoint, partitions, self.settings)
        records = source.stream(self.spark, self.settings)
        if query.event_time is not None:
            self._journals.follow(checkpoint.place, self.settings, partitions if source.is_in_kafka else ())
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
        committed = contents.batch(contents.last_committed)
        self._progress.stands_at(query.name, committed.ends if committed and source.is_in_kafka else {})
        rows = query.streamed(records, self.settings, partitions, contents.sources, schemas)
        writer = query.sink.writer(rows, self.settings)
        writer = writer.queryName(query.name).outputMode(query.mode).option("checkpointLocation", str(checkpoint.folder))
        pause_ms = round(max(query.trigger_seconds, self.settings.trigger_seconds) * 1000)
        writer = writer.trigger(availableNow=True) if self.options.once else writer.trigger(processingTime=f"{pause_ms} milliseconds")
        try:
            return writer.start()
        except AnalysisException as error:
            msg = f"query {query.name} cannot run in mode {query.mode}: {str(error).splitlines()[0]}"
            raise StreamgaugeError(msg) from error

    def _stop_all(self) -> None:
        """Stops each query when the batch that it is at is done, or at the deadline."""
        deadline = time.monotonic() + FINISH_BATCH_SECONDS
        at = {name: _batch(running) for name, running in self.running.items()}
        while self.running:
            for name, running in list(self.running.items()):
                is_at_work = running.isActive and running.status["isTriggerActive"] and running.status["isDataAvailable"]
                if not is_at_work or _batch(running) != at[name] or time.monotonic() > deadline:
                    self._stop(name)
            time.sleep(POLL_SECONDS / 10)
        self._journals.catch_up(at_once=True)

    def _stop(self, name: str) -> None:
        try:
            self.running.pop(name).stop()
        except (PySparkException, Py4JJavaError):  # its thread hangs, most likely on a Kafka that does not answer; it ends with the process
            self.say(f"{name} did not stop in time and is cut off; at its next start it goes on from its checkpoint")


def _text_of(error: Exception) -> str:
    return str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else f"{type(error).__name__}: {error}"


def _batch(running: StreamingQuery) -> int:
    progress = running.lastProgress
    return -1 if progress is None else progress["batchId"]


def _told(given_up: Mapping[str, str]) -> str:
    """Which queries were given up, those of one reason together."""
    reasons = dict.fromkeys(given_up.values())
    names = {reason: [name for name, why in given_up.items() if why == reason] for reason in reasons}
    return "; ".join(f"{'query' if len(of) == 1 else 'queries'} {', '.join(of)} given up: {reason}" for reason, of in names.items())
