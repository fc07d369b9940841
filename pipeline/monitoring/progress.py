"""Publishes each query event to topic `streaming-metrics` and the state of each query to `query-states`."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import Any

import orjson
from confluent_kafka import KafkaError, KafkaException, Message
from py4j.java_gateway import JavaObject
from pyspark import SparkContext
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from contract.checkpoints.contents import Offsets, Partition
from contract.query_status import HEARTBEAT_SECONDS
from contract.topics import QUERY_STATES, STREAMING_METRICS
from infrastructure.kafka.cluster import close_producer
from infrastructure.kafka.errors import forbidden, is_forbidden
from infrastructure.kafka.topic_ends import TopicEnds
from infrastructure.settings import Settings
from infrastructure.text import utc_text
from pipeline.monitoring.consumers import Consumers, read_to
from pipeline.monitoring.failures import Failure, failure_of
from pipeline.monitoring.measures import measures
from pipeline.monitoring.query_states import QueryStates

ENDS_SECONDS = 1
LAST_EVENTS_SECONDS = 10
LAST_RECORDS_SECONDS = 2


class JsonListener(StreamingQueryListener):
    """A listener whose `onQueryProgress` takes the progress of a batch as JSON.

    PySpark reads it field by field, in hundreds of calls to the JVM. With ten queries, these took a sixth of the CPU time.
    """

    @cached_property
    def _jlistener(self) -> JavaObject:
        return SparkContext._jvm.PythonStreamingQueryListenerWrapper(_AsJson(self))  # type: ignore[union-attr]


class ProgressToKafka(JsonListener):
    """Publishes every event of every query. Never waits for Kafka; events that do not fit its queue are dropped.

    A thread asks Kafka for the end offsets of the source topics. It also publishes the state of each running query at least every
    HEARTBEAT_SECONDS, because Spark reports nothing during a batch, which may take minutes.
    """

    def __init__(
        self,
        settings: Settings,
        say: Callable[[str], None] = lambda _: None,
        on_progress: Callable[[str, dict[str, Any] | None], None] = lambda _query, _progress: None,
        look: Callable[[Sequence[dict[str, Any]], Mapping[str, int]], None] = lambda _rows, _topic_ends: None,
        consumers: Consumers | None = None,
    ) -> None:
        """on_progress: called in a Spark thread with a query's name and the progress of a batch, or None when there is nothing to do.

        look: called every ENDS_SECONDS, in a thread of this object, with the rows of the running queries and the known end offsets.
        consumers: those of Spark's driver, if queries run in real-time mode.
        """
        self._kafka, self._say, self._on_progress, self._look, self._consumers = settings.kafka, say, on_progress, look, consumers
        self._warned_of: set[str] = set()
        self._in_real_time: dict[str, list[str]] = {}
        self._producer = settings.kafka.producer({"linger.ms": 20, "queue.buffering.max.messages": 10_000})
        self._is_closed = False
        self._process = {"host": socket.gethostname(), "pid": os.getpid()}
        self._states = QueryStates()
        self._topic_ends = TopicEnds(settings.kafka)
        self._lock = threading.Condition()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="query states", daemon=True)
        self._thread.start()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        with self._lock:
            self._states.started(str(event.runId), event.name or str(event.id), datetime.now(UTC))
        self._publish("started", str(event.runId), {})

    def onQueryProgress(self, event: str) -> None:  # type: ignore[override] # noqa: N802
        """Publishes the measures of a micro-batch."""
        progress, now = orjson.loads(event), datetime.now(UTC)
        with self._lock:
            in_real_time = bool(self._in_real_time.get(self._states.query_of(progress["runId"])))
            measured = measures(progress, now, self._topic_ends.ends, in_real_time=in_real_time)
            published = self._states.progressed(progress["runId"], measured, now)
        self._publish("progress", progress["runId"], published)
        self._on_progress(self._states.query_of(progress["runId"]), progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Publishes that a query is waiting for records."""
        with self._lock:
            self._states.idled(str(event.runId), datetime.now(UTC))
        self._publish("idle", str(event.runId), {})
        self._on_progress(self._states.query_of(str(event.runId)), None)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Publishes that a query has ended, and the error if there was one."""
        failure = failure_of(event.exception) if event.exception else None
        fields = {"error": failure.error, "error_detail": failure.detail} if failure else {"error": None, "error_detail": None}
        with self._lock:  # `close` must not come between the end and its record
            self._states.ended(str(event.runId), failure, datetime.now(UTC))
            self._publish("terminated", str(event.runId), fields)
            self._lock.notify_all()

    def resumes_at(self, query: str, offsets: Offsets, in_real_time: Collection[Partition] = (), *, catches_up: bool = False) -> None:
        """Records the offsets from which a query is about to resume, because its first batch may take long.

        in_real_time: the partitions that it reads in that mode; none in micro-batches. catches_up: see `Run`.
        """
        with self._lock:
            self._in_real_time[query] = [f"{topic}-{number}" for topic, number in in_real_time]
            next_offsets = {f"{topic}-{number}": offset for (topic, number), offset in offsets.items()}
            self._states.resumes_at(query, next_offsets, catches_up=catches_up)

    def waiting(self, query: str, why: Failure | None = None) -> None:
        """Publishes that a query is to start: after others, or with a new schema, which may take a minute.

        why: what prevents the start, if a person has to act.
        """
        with self._lock:
            self._states.waiting(query, datetime.now(UTC), why)
        self._publish_state(query)

    def given_up(self, query: str, why: Failure) -> None:
        """Publishes that a query is not restarted, which Spark does not know."""
        with self._lock:
            self._states.given_up(query, why, datetime.now(UTC))
        self._publish_state(query)

    def close(self) -> None:
        """Waits for Spark's last events for at most LAST_EVENTS_SECONDS, and sends pending records for at most LAST_RECORDS_SECONDS.

        Call it before removing the listener: Spark reports the end of a query with a delay.
        """
        with self._lock:
            self._lock.wait_for(lambda: not self._states.are_any_active, LAST_EVENTS_SECONDS)
        self._closing.set()
        self._thread.join(LAST_RECORDS_SECONDS)
        with self._lock:
            stopped = self._states.stopped(datetime.now(UTC))
        for query in stopped:
            self._publish_state(query)
        with self._lock:
            self._is_closed = True
        close_producer(self._producer, LAST_RECORDS_SECONDS)
        self._topic_ends.close()

    def _poll(self) -> None:
        while not self._closing.wait(ENDS_SECONDS):
            try:
                self._publish_and_look()
            except Exception as error:  # this thread alone shows that the queries are alive
                problem = f"{type(error).__name__}: {error}"
                if problem not in self._warned_of:
                    self._warned_of.add(problem)
                    self._say(f"warning: the queries continue, but what is known of them could not be published or watched: {problem}")

    def _publish_and_look(self) -> None:
        with self._lock:
            partitions = {*self._states.partitions, *chain.from_iterable(self._in_real_time.values())}
            due = self._states.not_published_for(HEARTBEAT_SECONDS, datetime.now(UTC))
        for query in due:
            self._publish_state(query)
        self._topic_ends.ask(partitions)
        self._publish_what_was_read(partitions)
        with self._lock:
            rows = [row | {"process": self._process} for row in self._states.active(datetime.now(UTC))]
        self._look(rows, self._topic_ends.ends)

    def _publish_what_was_read(self, partitions: Collection[str]) -> None:
        """Publishes how far the queries in real-time mode have read since their last batch, which may have begun long ago."""
        lags = self._consumers.lags(partitions) if self._consumers else {}
        with self._lock:
            offsets = {query: read_to(lag, self._topic_ends.ends) for query, lag in lags.items() if self._in_real_time.get(query)}
            changed = self._states.has_read_to(offsets)
        for query in changed:
            self._publish_state(query)

    def _publish(self, event: str, run_id: str, fields: dict[str, Any]) -> None:
        query = self._states.query_of(run_id)
        record = {"event": event, "query": query, "time": utc_text(datetime.now(UTC)), "process": self._process, "run_id": run_id}
        self._send(STREAMING_METRICS.name, query, record | fields)
        self._publish_state(query)

    def _publish_state(self, query: str) -> None:
        with self._lock:
            state = self._states.published(query, datetime.now(UTC)) | {"process": self._process}
            # Sent under the lock, so that an older row cannot follow a newer one.
            self._send(QUERY_STATES.name, query, state)

    def _send(self, topic: str, query: str, value: dict[str, Any]) -> None:
        with self._lock, contextlib.suppress(BufferError):
            if self._is_closed:
                return
            try:
                self._producer.produce(topic, key=query, value=orjson.dumps(value), on_delivery=self._delivered)
            except KafkaException as error:  # the client knows already that Kafka refuses the topic
                self._note(error.args[0], topic)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, record: Message) -> None:
        self._note(error, record.topic() or "")

    def _note(self, error: KafkaError | None, topic: str) -> None:
        if is_forbidden(error) and topic not in self._warned_of:
            self._warned_of.add(topic)
            self._say(
                f"warning: {forbidden(self._kafka, f'write to topic {topic}')}; the queries continue, but status and dashboard do not show them"
            )


class _AsJson(JStreamingQueryListener):
    def onQueryProgress(self, jevent: JavaObject) -> None:  # noqa: N802 - Spark's name
        self.pylistener.onQueryProgress(jevent.progress().json())
