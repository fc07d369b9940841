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
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.confluent_avro import schema_ids, unknown_ids
from pipeline.progress import ProgressToKafka
from pipeline.query import Query
from pipeline.schema_book import SchemaBook
from pipeline.sources import records_from, source_partitions, stream_of_records
from pipeline.watermarks import with_partition_watermarks
from streamgauge.errors import StreamgaugeError
from streamgauge.schema_registry import RegistryAway, SchemaRegistry
from streamgauge.settings import Settings

POLL_SECONDS = 0.1
FINISH_BATCH_SECONDS = 5
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
    """A query that is to be started, and what is to be found out before. Times are of the monotonic clock.

    unknown_ids: schema ids to ask the registry for. waits_since: when the registry was first found to be away.
    """

    unknown_ids: frozenset[int] = frozenset()
    not_before: float = 0
    waits_since: float | None = None


class Runner:
    """Runs queries on one Spark session until they end, fail, or the process is told to stop."""

    def __init__(
        self, spark: SparkSession, settings: Settings, options: RunOptions, notice: Callable[[str], None] = lambda _: None
    ) -> None:
        """`notice` is told, in a line each, what starts, and what waits for what."""
        self.spark, self.settings, self.options = spark, settings, options
        self.running: dict[str, StreamingQuery] = {}
        self.stop_requested = threading.Event()
        self._notice = notice
        self._schemas = SchemaBook(SchemaRegistry(settings.registry_url))
        self._due: dict[str, Due] = {}
        self._queries: dict[str, Query] = {}
        self._locks: dict[str, FileLock] = {}

    def run(self, queries: Iterable[Query]) -> None:
        """Starts `queries` and waits for all; raises StreamgaugeError as soon as one fails, when the others have been stopped.

        A query that needs the schema registry waits for it, and the others do not wait for that query. One that meets a schema which it
        does not know is started again, from its checkpoint, with what the registry says then.
        """
        listener = ProgressToKafka(self.settings)
        self.spark.streams.addListener(listener)
        try:
            for query in queries:
                self._queries[query.name], self._due[query.name] = query, Due()
                if self.options.once:  # one after the other: side by side they would only take each other's cores
                    self._wait()
            self._wait()
        finally:
            self._stop_all()
            self.spark.streams.removeListener(listener)
            listener.close()
            for lock in self._locks.values():
                lock.release()

    def stop_on_signals(self) -> None:
        """Makes SIGTERM and SIGINT end `run` after the batches under way."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop_requested.set())

    def checkpoint(self, query: Query) -> Path:
        """Where the query keeps its checkpoint: a folder for its name, version and output mode."""
        return self.settings.checkpoints.absolute() / f"{query.name}-v{query.version}-{query.mode}"

    def _start(self, query: Query) -> StreamingQuery:
        schemas = None if query.subject is None else self._schemas.of(query.subject)
        checkpoint = self.checkpoint(query)
        self._lock(query, checkpoint)
        partitions = source_partitions(self.settings, query.source.name, pattern=self.options.pattern)
        records = stream_of_records(self.spark, self.settings, query.source.name, pattern=self.options.pattern)
        delay = getattr(self.settings, query.watermark)
        watermarked = partial(with_partition_watermarks, delay=delay, skew=self.settings.partition_skew, partitions=partitions)
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
        writer = query.sink.writer(query.result(records, self.settings, schemas, watermarked), self.settings)
        writer = writer.queryName(query.name).outputMode(query.mode).option("checkpointLocation", str(checkpoint))
        writer = (
            writer.trigger(availableNow=True)
            if self.options.once
            else writer.trigger(processingTime=f"{round(query.trigger_seconds * 1000)} milliseconds")
        )
        try:
            return writer.start()
        except AnalysisException as error:
            msg = f"query {query.name} cannot run in mode {query.mode}: {str(error).splitlines()[0]}"
            raise StreamgaugeError(msg) from error

    def _wait(self) -> None:
        """Starts what is due, and waits until nothing is due and nothing runs, or a stop is asked for."""
        while not self.stop_requested.is_set():
            self._start_due()
            was_active = any(running.isActive for running in self.running.values())
            self._take_failures()
            if not (was_active or self._due):
                return
            self.stop_requested.wait(POLL_SECONDS)
        self._take_failures()

    def _start_due(self) -> None:
        for name in [name for name, due in self._due.items() if due.not_before <= time.monotonic()]:
            query, due = self._queries[name], self._due[name]
            try:
                if query.subject is not None:
                    self._schemas.learn(query.subject, due.unknown_ids)
                self.running[name] = self._start(query)
            except RegistryAway as error:
                self._due[name] = self._postponed(query, due, error)
            else:
                del self._due[name]
                self._notice(f"{name} runs")

    def _postponed(self, query: Query, due: Due, error: RegistryAway) -> Due:
        now = time.monotonic()
        if due.waits_since is None:
            self._notice(f"{query.name} waits, and tries again every {REGISTRY_RETRY_SECONDS} s: {error}")
        elif self.options.once and now - due.waits_since > REGISTRY_SECONDS:
            raise error
        return replace(due, not_before=now + REGISTRY_RETRY_SECONDS, waits_since=due.waits_since or now)

    def _take_failures(self) -> None:
        """Makes a query that failed for an unknown schema due again; raises StreamgaugeError for any other failure."""
        for name, running in list(self.running.items()):
            error = None if running.isActive else running.exception()
            if error is None:
                continue
            ids = unknown_ids(str(error))
            if not ids:
                raise StreamgaugeError(explained(name, error, self.settings.checkpoints))
            del self.running[name]
            self._notice(f"{name} met a schema that it does not know (id {min(ids)}) and asks the registry")
            self._due[name] = Due(frozenset(ids | self._ids_ahead(self._queries[name], running)))

    def _ids_ahead(self, query: Query, failed: StreamingQuery) -> set[int]:
        """All schema ids from where the query stands to the topic's end: however many are unknown, one new start will do."""
        try:
            offsets = failed._jsq.exception().get().startOffset()
            starting = offsets if offsets.startswith("{") else "earliest"
            return schema_ids(records_from(self.spark, self.settings, query.source.name, starting, pattern=self.options.pattern))
        except PySparkException:
            return set()

    def _lock(self, query: Query, checkpoint: Path) -> None:
        if query.name in self._locks:
            return
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(checkpoint.with_suffix(".lock"), timeout=0)
        holder = checkpoint.with_suffix(".driver")
        try:
            lock.acquire()
        except Timeout as error:
            who = f" (its Spark driver is pid {holder.read_text()})" if holder.exists() else ""
            msg = f"query {query.name} runs already in another process{who}: it holds {checkpoint}; stop that one, or use another STREAMGAUGE_HOME"
            raise StreamgaugeError(msg) from error
        self._locks[query.name] = lock
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


def explained(name: str, error: StreamingQueryException, checkpoints: Path) -> str:
    """One message for a query's failure: what happened and what to do."""
    text = str(error)
    if "failOnDataLoss" in text or "data may have been lost" in text.lower() or "KAFKA_DATA_LOSS" in text:
        return (
            f"query {name} stopped: records that it had not read yet are gone from Kafka (retention has cut them, or the topic was deleted and created anew). "
            f"Two ways out: go on with what is left and accept the gap (STREAMGAUGE_FAIL_ON_DATA_LOSS=false), "
            f"or count anew from the earliest record that is there (delete {checkpoints / name}-v*)"
        )
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return f"query {name} failed: {first} (the whole of it is in the log, spark.log)"


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
