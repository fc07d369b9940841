"""Starts queries, all in the same way, and waits for them."""

import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
from filelock import FileLock, Timeout
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.batch_journal import BatchJournals
from pipeline.checkpoints import checkpoint_folder
from pipeline.confluent_avro import schema_ids, unknown_ids
from pipeline.progress import ProgressToKafka
from pipeline.query import Query
from pipeline.schema_book import SchemaBook
from pipeline.sources import records_from, source_partitions, stream_of_records
from pipeline.supervisor import RestartPolicy
from pipeline.watermarks import with_partition_watermarks
from streamgauge.errors import StreamgaugeError
from streamgauge.schema_registry import RegistryAway, SchemaRegistry
from streamgauge.settings import Settings

POLL_SECONDS = 0.1
FIRST_BATCH_SECONDS = 20
FINISH_BATCH_SECONDS = 3
PREVIOUS_DRIVER_SECONDS = 15
REGISTRY_RETRY_SECONDS = 2
REGISTRY_SECONDS = 60
"""How long a run with --once waits for a schema registry that is away; one that goes on waits as long as it takes."""


@dataclass(frozen=True)
class RunOptions:
    """How queries are run, beyond what they are.

    once: take what is there and end. pattern: a regular expression of topics to read instead of the query's source.
    """

    once: bool = False
    pattern: str | None = None


@dataclass(frozen=True)
class Due:
    """A query that is to be started. Times are of the monotonic clock.

    unknown_ids: schema ids to ask the registry for before. waits_since: when the registry was first found to be away.
    """

    not_before: float = 0
    unknown_ids: frozenset[int] = frozenset()
    waits_since: float | None = None


class Runner:
    """Runs queries on one Spark session until they end, fail, or the process is told to stop."""

    def __init__(self, spark: SparkSession, settings: Settings, options: RunOptions) -> None:
        self.spark, self.settings, self.options = spark, settings, options
        self.running: dict[str, StreamingQuery] = {}
        self.queries: dict[str, Query] = {}
        self.restarts = RestartPolicy()
        self.stop_requested = threading.Event()
        self._due: dict[str, Due] = {}
        self._schemas = SchemaBook(SchemaRegistry(settings.registry_url))
        self._locks: list[FileLock] = []
        self._journals = BatchJournals()

    def run(self, queries: Iterable[Query], say: Callable[[str], None] = lambda _: None) -> None:
        """Starts `queries` and keeps them running until they end or a stop is asked for; tells `say` of each start.

        A query that needs the schema registry waits for it; the others do not wait for that query.
        Raises StreamgaugeError as soon as one fails for good, when the others have been stopped.
        """
        listener = ProgressToKafka(self.settings)
        self.spark.streams.addListener(listener)
        try:
            for query in sorted(queries, key=lambda query: query.trigger_seconds):
                if self.stop_requested.is_set():
                    break
                self._lock(query)
                self.queries[query.name], self._due[query.name] = query, Due()
                self._start_due(say)
                # One after the other: cold and side by side they would take each other's cores, and the first row would come last.
                if self.options.once:
                    self._keep_running(say)
                else:
                    self._wait_for_first_batch(query.name)
            self._keep_running(say)
        finally:
            self._stop_all()
            self.spark.streams.removeListener(listener)
            listener.close()
            for lock in self._locks:
                lock.release()

    def stop_on_signals(self) -> None:
        """Makes SIGTERM and SIGINT end `run` after the batches under way."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop_requested.set())

    def checkpoint(self, query: Query) -> Path:
        """Where the query keeps its checkpoint: a folder for its name, version and output mode."""
        return checkpoint_folder(self.settings, query.name, query.version, query.mode)

    def _wait_for_first_batch(self, name: str) -> None:
        running, deadline = self.running.get(name), time.monotonic() + FIRST_BATCH_SECONDS
        while running and running.isActive and running.lastProgress is None and "Waiting for data" not in running.status["message"]:
            self._journals.catch_up()
            if self.stop_requested.wait(POLL_SECONDS) or time.monotonic() > deadline:
                return

    def _keep_running(self, say: Callable[[str], None]) -> None:
        while not self.stop_requested.wait(POLL_SECONDS):
            self._journals.catch_up()
            was_active = any(running.isActive for running in self.running.values())
            for name, running in list(self.running.items()):
                error = None if running.isActive else running.exception()
                if error is not None:
                    self._due[name] = self._after_failure(name, str(error), say)
                    del self.running[name]
            is_started = self._start_due(say)
            if not (was_active or is_started or self._due):
                return

    def _start_due(self, say: Callable[[str], None]) -> bool:
        """Starts the queries whose time has come; returns whether it was any."""
        is_started = False
        for name in [name for name, due in self._due.items() if due.not_before <= time.monotonic()]:
            query = self.queries[name]
            try:
                if query.subject is not None:
                    self._schemas.learn(query.subject, self._due[name].unknown_ids)
                self.running[name] = self._start(query)
            except RegistryAway as away:
                self._postpone(name, away, say)
            else:
                del self._due[name]
                is_started = True
                say(f"{name} runs")
        return is_started

    def _postpone(self, name: str, away: RegistryAway, say: Callable[[str], None]) -> None:
        now, due = time.monotonic(), self._due[name]
        if due.waits_since is None:
            say(f"{name} waits for the schema registry and tries again every {REGISTRY_RETRY_SECONDS} s: {away}")
        elif self.options.once and now - due.waits_since > REGISTRY_SECONDS:
            raise away
        self._due[name] = replace(due, not_before=now + REGISTRY_RETRY_SECONDS, waits_since=due.waits_since or now)

    def _after_failure(self, name: str, failure: str, say: Callable[[str], None]) -> Due:
        """When to start the query again; raises StreamgaugeError when that is of no use."""
        ids = unknown_ids(failure)
        if ids:
            say(f"{name} met a schema that it does not know (id {min(ids)}): it asks the registry and starts again from its checkpoint")
            return Due(unknown_ids=frozenset(ids | self._ids_ahead(name)))
        restart = self.restarts.restart(name, failure, self.settings)
        say(f"{name} starts again from its checkpoint in {restart.after_seconds:.0f} s: {restart.why}")
        return Due(time.monotonic() + restart.after_seconds)

    def _ids_ahead(self, name: str) -> set[int]:
        """All schema ids from where the failed query stands to the topic's end: however many are unknown, one new start will do."""
        try:
            offsets = self.running[name]._jsq.exception().get().startOffset()
            start = offsets if offsets.startswith("{") else "earliest"
            return schema_ids(records_from(self.spark, self.settings, self.queries[name].source.name, start, pattern=self.options.pattern))
        except PySparkException:  # Kafka is away, say; the one id that is known will do for a start
            return set()

    def _start(self, query: Query) -> StreamingQuery:
        schemas = None if query.subject is None else self._schemas.of(query.subject)
        partitions = source_partitions(self.settings, query.source.name, pattern=self.options.pattern)
        records = stream_of_records(self.spark, self.settings, query.source.name, pattern=self.options.pattern)
        if query.event_time is not None:
            self._journals.follow(self.checkpoint(query), self.settings, partitions)
        delay = query.watermark or self.settings.watermark
        watermarked = partial(with_partition_watermarks, delay=delay, skew=self.settings.partition_skew, partitions=partitions)
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
        writer = query.sink.writer(query.result(records, schemas, watermarked), self.settings)
        writer = writer.queryName(query.name).outputMode(query.mode).option("checkpointLocation", str(self.checkpoint(query)))
        writer = (
            writer.trigger(availableNow=True)
            if self.options.once
            else writer.trigger(processingTime=f"{round(max(query.trigger_seconds, self.settings.trigger_seconds) * 1000)} milliseconds")
        )
        try:
            return writer.start()
        except AnalysisException as error:
            msg = f"query {query.name} cannot run in mode {query.mode}: {str(error).splitlines()[0]}"
            raise StreamgaugeError(msg) from error

    def _lock(self, query: Query) -> None:
        checkpoint = self.checkpoint(query)
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(checkpoint.with_suffix(".lock"), timeout=0)
        holder = checkpoint.with_suffix(".driver")
        try:
            lock.acquire()
        except Timeout as error:
            who = f" (its Spark driver is pid {holder.read_text()})" if holder.exists() else ""
            msg = f"query {query.name} runs already in another process{who}: it holds {checkpoint}; stop that one, or use another STREAMGAUGE_HOME"
            raise StreamgaugeError(msg) from error
        self._locks.append(lock)
        jvm_pid = self.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        if holder.exists():
            _wait_until_gone(int(holder.read_text() or 0), jvm_pid)
        holder.write_text(str(jvm_pid))

    def _stop_all(self) -> None:
        deadline = time.monotonic() + FINISH_BATCH_SECONDS
        for running in self.running.values():
            while (
                running.isActive and running.status["isTriggerActive"] and running.status["isDataAvailable"] and time.monotonic() < deadline
            ):
                time.sleep(POLL_SECONDS)
            running.stop()
        self._journals.catch_up(at_once=True)


def _wait_until_gone(driver_pid: int, own_pid: int) -> None:
    """Waits for the JVM of a driver that was killed: it lives on until it notices, a moment later."""
    if driver_pid in {0, own_pid}:
        return
    try:
        driver = psutil.Process(driver_pid)
        if "java" in driver.name():
            driver.wait(PREVIOUS_DRIVER_SECONDS)
    except psutil.NoSuchProcess:
        return
    except psutil.TimeoutExpired as error:
        msg = f"the Spark driver of an earlier run (pid {driver_pid}) still runs; end it, then start again"
        raise StreamgaugeError(msg) from error
