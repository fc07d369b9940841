"""Starts queries, all in the same way, and waits for them."""

import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from filelock import FileLock, Timeout
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.progress import ProgressToKafka
from pipeline.query import Query
from pipeline.sources import source_partitions, stream_of_records
from pipeline.supervisor import RestartPolicy
from pipeline.watermarks import with_partition_watermarks
from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings

POLL_SECONDS = 0.1
FIRST_BATCH_SECONDS = 20
FINISH_BATCH_SECONDS = 3
PREVIOUS_DRIVER_SECONDS = 15


@dataclass(frozen=True)
class RunOptions:
    """How queries are run, beyond what they are.

    once: take what is there and end. pattern: a regular expression of topics to read instead of the query's source.
    """

    once: bool = False
    pattern: str | None = None


class Runner:
    """Runs queries on one Spark session until they end, fail, or the process is told to stop."""

    def __init__(self, spark: SparkSession, settings: Settings, options: RunOptions) -> None:
        self.spark, self.settings, self.options = spark, settings, options
        self.running: dict[str, StreamingQuery] = {}
        self.queries: dict[str, Query] = {}
        self.restarts = RestartPolicy()
        self.stop_requested = threading.Event()
        self._locks: list[FileLock] = []

    def run(self, queries: Iterable[Query], say: Callable[[str], None] = lambda _: None) -> None:
        """Starts `queries` and keeps them running until they end or a stop is asked for; tells `say` of each start.

        Raises StreamgaugeError as soon as one fails for good, when the others have been stopped.
        """
        listener = ProgressToKafka(self.settings)
        self.spark.streams.addListener(listener)
        try:
            for query in sorted(queries, key=lambda query: query.trigger_seconds):
                if self.stop_requested.is_set():
                    break
                self._lock(query)
                self.queries[query.name] = query
                self.running[query.name] = self._start(query)
                say(f"{query.name} runs")
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
        return self.settings.checkpoints.absolute() / f"{query.name}-v{query.version}-{query.mode}"

    def _wait_for_first_batch(self, name: str) -> None:
        running, deadline = self.running[name], time.monotonic() + FIRST_BATCH_SECONDS
        while running.isActive and running.lastProgress is None and "Waiting for data" not in running.status["message"]:
            if self.stop_requested.wait(POLL_SECONDS) or time.monotonic() > deadline:
                return

    def _keep_running(self, say: Callable[[str], None]) -> None:
        while not self.stop_requested.wait(POLL_SECONDS):
            for name, running in self.running.items():
                error = None if running.isActive else running.exception()
                if error is not None:
                    restart = self.restarts.restart(name, str(error), self.settings)
                    say(f"{name} starts again from its checkpoint in {restart.after_seconds:.0f} s: {restart.why}")
                    self.stop_requested.wait(restart.after_seconds)
                    self.running[name] = self._start(self.queries[name])
            if not any(running.isActive for running in self.running.values()):
                return

    def _start(self, query: Query) -> StreamingQuery:
        partitions = source_partitions(self.settings, query.source.name, pattern=self.options.pattern)
        records = stream_of_records(self.spark, self.settings, query.source.name, pattern=self.options.pattern)
        watermarked = partial(
            with_partition_watermarks, delay=self.settings.watermark, skew=self.settings.partition_skew, partitions=partitions
        )
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", query.name)
        writer = query.sink.writer(query.result(records, watermarked), self.settings)
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
