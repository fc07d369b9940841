"""Runs queries side by side. A failure of one does not affect the others."""

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from infrastructure.errors import StreamgaugeError, Unavailable
from infrastructure.kafka.errors import TopicMissing
from infrastructure.process.locks import InUse
from infrastructure.process.stop_signals import Stopped, StopRequest
from infrastructure.process.waiting import FINISH_SECONDS
from infrastructure.settings import Settings
from infrastructure.text import utc_text
from pipeline.checkpoint.use import claim, locked
from pipeline.monitoring.alerts import Alerts
from pipeline.monitoring.consumers import Consumers
from pipeline.monitoring.executors import ExecutorWatch, executors_of
from pipeline.monitoring.producers import DIED, Producers
from pipeline.monitoring.progress import ProgressToKafka
from pipeline.monitoring.watch import Level, QueryWatches
from pipeline.query import Query
from pipeline.running.earlier_runs import RunsElsewhere, earlier_runs
from pipeline.running.query_life import QueryLife, RunContext, State
from pipeline.running.run import Starter

FIRST_BATCH_SECONDS = 20
SOURCES_SECONDS = 60
"""How often it is checked that no source was recreated while its queries run."""
PIPELINE = "pipeline"
"""The name in alerts that are not about one query."""
KILLED = "the previous run did not stop cleanly: it, its container or its machine was killed; the queries continue from their checkpoints"


class Runner:
    """Runs queries on one Spark session until they end or are given up, or until a stop is requested.

    After a stop request, the current batches may finish first.

    Everything happens in the thread that calls `run`, in order of arrival. Other threads (those that wait for the end of a run, Spark's
    listener) and signals only put calls into a queue. There is no polling. Only at the end does each query stop in a thread of its own.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        say: Callable[[str], None] = lambda _: None,
        stop_requested: StopRequest | None = None,
        *,
        once: bool = False,
    ) -> None:
        """once: process the available records and end."""
        self.spark, self.settings, self.say, self.once = spark, settings, say, once
        self.stop_requested = stop_requested or StopRequest()
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lives: dict[str, QueryLife] = {}
        self._watches, self._executors = QueryWatches(settings, self._alert), ExecutorWatch()
        self._sources_due = time.monotonic() + SOURCES_SECONDS

    def run(self, queries: Iterable[Query], unless_running: Collection[str] = ()) -> None:
        """Runs `queries` until they end or a stop is requested, and reports what happens to each.

        unless_running: the names of queries that are skipped if another process runs them.

        A query that fails is restarted from its checkpoint, and given up if that does not help. A query that cannot reach Kafka, the schema
        registry or the object store waits. The other queries continue.
        Raises StreamgaugeError at the end if a query was given up, Stopped if a signal came before a run with `once` was over, and before it
        starts a query if another process runs one, with this STREAMGAUGE_HOME or another, or if the checkpoints have another owner.
        """
        claim(self.settings)
        self.stop_requested.wake = lambda: self._calls.put(lambda: None)
        in_order = sorted(queries, key=lambda query: query.trigger_seconds)
        with contextlib.ExitStack() as locks:
            to_run = [query for query in in_order if self._try_lock(query, locks, unless_running)]
            earlier = earlier_runs({query.name for query in to_run}, self.settings, self.say, self.stop_requested)
            if refused := earlier.elsewhere.keys() - unless_running:
                raise RunsElsewhere(earlier.elsewhere[min(refused)])
            to_run = [query for query in to_run if query.name not in earlier.elsewhere]
            with self._context(to_run) as context:
                if earlier.killed_at is not None:
                    self._alert("warning", PIPELINE, f"{KILLED}; its last report is of {utc_text(earlier.killed_at)}")
                for query in to_run:
                    context.progress.waiting(query.name)
                for query in to_run:
                    life = self._lives[query.name] = QueryLife(query, context)
                    self._begin(life)
                self._run_until(lambda: all(life.is_over for life in self._lives.values()))
                is_cut_short = self.once and not all(life.is_over for life in self._lives.values())
        if given_up := [life for life in self._lives.values() if life.failure]:
            raise StreamgaugeError(_failures(given_up))
        if is_cut_short and self.stop_requested.number is not None:
            raise Stopped(self.stop_requested.number)

    def _try_lock(self, query: Query, locks: contextlib.ExitStack, unless_running: Collection[str]) -> bool:
        name = query.checkpoint_name
        try:
            locks.enter_context(locked(name.place(self.settings), self._jvm_pid))
            for other in sorted(query.names_in_all_modes - {name}):
                locks.enter_context(locked(other.place(self.settings)))
        except InUse:
            if query.name not in unless_running:
                raise
            return False
        return True

    @contextlib.contextmanager
    def _context(self, queries: Sequence[Query]) -> Iterator[RunContext]:
        """Creates what the `queries` share. On exit, stops them and sends the remaining reports, even after an error."""
        with contextlib.ExitStack() as at_end:
            self._alerts = Alerts(self.settings, self.say)
            at_end.callback(self._alerts.close)
            consumers = Consumers(self.spark) if any(query.real_time for query in queries) and not self.once else None
            progress = ProgressToKafka(self.settings, self.say, self._on_progress, self._look, consumers)
            self.spark.streams.addListener(progress)
            at_end.callback(self._unless_jvm_gone, lambda: self.spark.streams.removeListener(progress))
            at_end.callback(self._unless_jvm_gone, self._execute_calls)
            at_end.callback(progress.close)
            at_end.callback(self._unless_jvm_gone, self._stop_all)
            self._starter = Starter(self.spark, self.settings, progress, self.say, once=self.once)
            yield RunContext(self.settings, self._starter, self._alerts, progress, self.say, self._calls.put, self.once)

    def _look(self, rows: Sequence[Mapping[str, Any]], topic_ends: Mapping[str, int]) -> None:
        """Watches the executors, Kafka's producers and, unless `once`, the running queries. Called in another thread."""
        self._unless_jvm_gone(self._look_at_executors)
        self._unless_jvm_gone(self._look_at_producers)
        if not self.once:
            self._watches.look(rows, topic_ends)
            self._check_sources()

    def _look_at_executors(self) -> None:
        for level, text in self._executors.look(executors_of(self.spark)):
            self._alert(level, PIPELINE, text)

    def _look_at_producers(self) -> None:
        if self._producers.have_died():
            self._calls.put(self._end_with_jvm)

    @cached_property
    def _producers(self) -> Producers:
        return Producers(self.spark)

    def _end_with_jvm(self) -> None:
        """Ends Spark's JVM, in which queries that wait for a dead producer would not stop, and raises StreamgaugeError."""
        self._alerts.send("error", PIPELINE, DIED)
        self._unless_jvm_gone(lambda: self.spark.sparkContext._jvm.java.lang.Runtime.getRuntime().halt(1))  # type: ignore[union-attr]
        raise StreamgaugeError(DIED)

    def _check_sources(self) -> None:
        """Every SOURCES_SECONDS, gives up queries whose source was replaced, and restarts those that do not read all its partitions."""
        if time.monotonic() < self._sources_due:
            return
        self._sources_due = time.monotonic() + SOURCES_SECONDS
        for life in self._running:
            try:
                self._calls.put(partial(life.follow, self._starter.check_source(life.query)))
            except Unavailable:
                return
            except (TopicMissing, OSError):  # the next start says so
                continue
            except StreamgaugeError as error:
                self._calls.put(partial(life.abandon, error))

    def _alert(self, level: Level, query: str, text: str) -> None:
        self.say(f"{query}: {'resolved: ' if level == 'resolved' else ''}{text}")
        self._alerts.send(level, query, text)

    def _begin(self, life: QueryLife) -> None:
        """Continues until the query has begun or, with --once, until it is over."""
        # Queries start one after another: cold starts in parallel would compete for cores and delay the first result.
        if self.once:
            self._run_until(lambda: life.is_over)
        else:
            self._run_until(lambda: not life.is_starting, FIRST_BATCH_SECONDS)

    def _run_until(self, is_reached: Callable[[], bool], seconds: float = math.inf) -> None:
        """Starts due queries and executes queued calls until `is_reached`, a stop request, or for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while not self.stop_requested.is_set():
            for life in self._lives.values():
                if life.due <= time.monotonic() and not self.stop_requested.is_set():
                    life.start()
            if is_reached() or time.monotonic() >= deadline:
                return
            self._execute_next(min([deadline, *(life.due for life in self._lives.values())]))

    def _execute_next(self, until: float) -> None:
        """Waits for a call, no longer than `until`, and executes all that are queued: a start that waits for a server takes seconds."""
        with contextlib.suppress(Empty):
            call = self._calls.get(timeout=None if until == math.inf else max(until - time.monotonic(), 0))
            call()
        self._execute_calls()

    def _on_progress(self, query: str, progress: dict[str, Any] | None) -> None:
        if query in self._lives:
            self._calls.put(partial(self._lives[query].on_progress, progress))

    def _stop_all(self) -> None:
        """Stops each query after its current batch, or at the deadline."""
        deadline = time.monotonic() + FINISH_SECONDS
        _in_parallel(QueryLife.finish, self._lives.values())
        if names := [life.name for life in self._running]:
            self.say(f"stopping: {', '.join(names)} may take up to {FINISH_SECONDS} s to finish a batch")
        while self._running and time.monotonic() < deadline:
            self._execute_next(deadline)
        _in_parallel(QueryLife.stop, self._running)

    def _execute_calls(self) -> None:
        """Executes the remaining calls, so that every completed batch reaches the journal."""
        while not self._calls.empty():
            self._calls.get()()

    @property
    def _running(self) -> list[QueryLife]:
        return [life for life in list(self._lives.values()) if life.state is State.RUNNING]

    @property
    def _jvm_pid(self) -> int:
        return int(self.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]

    @staticmethod
    def _unless_jvm_gone(call: Callable[[], None]) -> None:
        with contextlib.suppress(Py4JError, ConnectionError):  # the queries ended with the JVM, and the caller finds out by itself
            call()


def _in_parallel(stop: Callable[[QueryLife], None], lives: Collection[QueryLife]) -> None:
    """Calls `stop` for each, and waits for all: Spark takes up to seconds for each, most of which it waits."""
    with ThreadPoolExecutor(max(len(lives), 1)) as threads:
        list(threads.map(stop, lives))


def _failures(given_up: Iterable[QueryLife]) -> str:
    """The queries that were given up, grouped by reason."""
    by_reason: dict[str, list[str]] = {}
    for life in given_up:
        by_reason.setdefault(life.failure, []).append(life.name)
    return "; ".join(f"{'query' if len(names) == 1 else 'queries'} {', '.join(names)} given up: {why}" for why, names in by_reason.items())
