"""How the queries run: each event as a record of topic `streaming-metrics`, and where each query stands as a row of `query-states`."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
from confluent_kafka import KafkaError, KafkaException, Message
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from contract.kafka.errors import forbidden, is_forbidden
from contract.kafka.topic_ends import TopicEnds
from contract.query_status import HEARTBEAT_SECONDS
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import QUERY_STATES, STREAMING_METRICS
from pipeline.checkpoint.contents import Offsets
from pipeline.monitoring.measures import Failure, failure_of, measures
from pipeline.monitoring.query_states import QueryStates
from pipeline.running.failures import is_none_of_its_own

ENDS_SECONDS = 1
LAST_EVENTS_SECONDS = 2


class ProgressToKafka(StreamingQueryListener):
    """Publishes every event of every query. It never waits for Kafka: what does not fit its queue is left out.

    A thread asks Kafka where the source topics end, and says of each query that runs, at least every HEARTBEAT_SECONDS, that it does:
    a batch may take minutes, and Spark is silent meanwhile.
    """

    def __init__(
        self,
        settings: Settings,
        say: Callable[[str], None] = lambda _: None,
        heard: Callable[[str, dict[str, Any] | None], None] = lambda _query, _progress: None,
    ) -> None:
        """`heard` is called, in a thread of Spark's, with a query's name and the progress of each batch, or None when it has nothing to do."""
        self._kafka, self._say, self._heard = settings.kafka, say, heard
        self._told: set[str] = set()
        self._producer = settings.kafka.producer({"linger.ms": 20, "queue.buffering.max.messages": 10_000})
        self._process = {"host": socket.gethostname(), "pid": os.getpid()}
        self._states = QueryStates()
        self._topic_ends = TopicEnds(settings.kafka)
        self._lock = threading.Condition()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._look_around, name="query states", daemon=True)
        self._thread.start()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Says that a query runs."""
        with self._lock:
            self._states.started(str(event.runId), event.name or str(event.id), datetime.now(UTC))
        self._publish("started", str(event.runId), {})

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Says what a micro-batch did."""
        progress, now = orjson.loads(event.progress.json), datetime.now(UTC)
        with self._lock:
            published = self._states.progressed(progress["runId"], measures(progress, now, self._topic_ends.ends), now)
        self._publish("progress", progress["runId"], published)
        self._heard(self._states.query_of(progress["runId"]), progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Says that a query waits for records."""
        with self._lock:
            self._states.idled(str(event.runId), datetime.now(UTC))
        self._publish("idle", str(event.runId), {})
        self._heard(self._states.query_of(str(event.runId)), None)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Says that a query ended, and by what error if it was one."""
        failure = failure_of(event.exception) if event.exception else None
        shown = None if event.exception and is_none_of_its_own(event.exception) else failure
        with self._lock:
            self._states.ended(str(event.runId), shown, datetime.now(UTC))
            self._lock.notify_all()
        fields = {"error": failure.error, "error_detail": failure.detail} if failure else {"error": None, "error_detail": None}
        self._publish("terminated", str(event.runId), fields)

    def stands_at(self, query: str, offsets: Offsets) -> None:
        """Says from where a query, which is about to be started, goes on: its batches may be long in coming."""
        with self._lock:
            self._states.stands_at(query, {f"{topic}-{number}": offset for (topic, number), offset in offsets.items()})

    def given_up(self, query: str, why: Failure) -> None:
        """Says that a query is not started again, which Spark does not know."""
        with self._lock:
            self._states.given_up(query, why, datetime.now(UTC))
        self._publish_state(query)

    def close(self) -> None:
        """Takes in what Spark still has to tell of queries that have ended, and sends what waits; each for at most two seconds.

        To be called before the listener is removed: Spark tells of an end a moment after it.
        """
        with self._lock:
            self._lock.wait_for(lambda: not self._states.are_any_active, LAST_EVENTS_SECONDS)
        self._closing.set()
        self._thread.join(LAST_EVENTS_SECONDS)
        self._producer.flush(LAST_EVENTS_SECONDS)

    def _look_around(self) -> None:
        while not self._closing.wait(ENDS_SECONDS):
            with self._lock:
                partitions, due = self._states.partitions, self._states.not_heard_for(HEARTBEAT_SECONDS, datetime.now(UTC))
            for query in due:
                self._publish_state(query)
            self._topic_ends.ask(partitions)

    def _publish(self, event: str, run_id: str, fields: dict[str, Any]) -> None:
        query = self._states.query_of(run_id)
        record = {"event": event, "query": query, "time": utc_text(datetime.now(UTC)), "process": self._process, "run_id": run_id}
        self._send(STREAMING_METRICS.name, query, record | fields)
        self._publish_state(query)

    def _publish_state(self, query: str) -> None:
        with self._lock:
            state = self._states.heard(query, datetime.now(UTC)) | {"process": self._process}
            # Under the lock, or an older row could come to stand behind a newer one.
            self._send(QUERY_STATES.name, query, state)

    def _send(self, topic: str, query: str, value: dict[str, Any]) -> None:
        with contextlib.suppress(BufferError, KafkaException):
            self._producer.produce(topic, key=query, value=orjson.dumps(value), on_delivery=self._note)
            self._producer.poll(0)

    def _note(self, error: KafkaError | None, record: Message) -> None:
        topic = record.topic() or ""
        if is_forbidden(error) and topic not in self._told:
            self._told.add(topic)
            self._say(f"warning: {forbidden(self._kafka, f'write to topic {topic}')}; the queries go on, unseen by status and dashboard")
