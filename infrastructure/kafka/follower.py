"""Follows a topic in a thread, for any number of readers that must not wait for Kafka, such as pages and HTTP requests."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.follow import RETRY_SECONDS, OpenReader, follow
from infrastructure.kafka.result_table import TableReader
from infrastructure.process.stop_signals import StopRequest
from infrastructure.rows import Decode, Row, decode_json

MAX_CACHED = 200
"""How many frames and charts of one snapshot are kept: those of the filters that people have chosen."""
P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A result topic at one moment. Immutable; compared and hashed by identity, so that derived frames can be cached."""

    kafka: KafkaCluster
    topic: str
    is_read: bool = False
    """Whether the topic was read to its end, so that `rows` is a complete table."""
    rows: tuple[Row, ...] = ()
    unreadable: Mapping[bytes | None, str] = field(default_factory=dict)
    """Keys whose value cannot be decoded, and why."""
    newest_record_at: datetime | None = None
    """Kafka's timestamp of the newest record, UTC."""
    error: str | None = None
    """Why the topic cannot be read at present. The rows are then those of the last read."""
    failing_since: datetime | None = None
    """When `error` first occurred, UTC."""
    derived: dict[Any, Any] = field(default_factory=dict, repr=False)
    """The results of functions decorated with `per_snapshot`."""


def per_snapshot(make: Callable[Concatenate[Snapshot, P], T]) -> Callable[Concatenate[Snapshot, P], T]:
    """Calls `make(snapshot, *filters)` once for a snapshot and filters, and gives the result to every browser: do not modify it."""

    @wraps(make)
    def cached(snapshot: Snapshot, /, *filters: P.args, **named: P.kwargs) -> T:
        key = (make, filters, *named.items())
        try:
            result: T = snapshot.derived[key]
        except KeyError:
            if len(snapshot.derived) >= MAX_CACHED:
                snapshot.derived.clear()
            result = snapshot.derived[key] = make(snapshot, *filters, **named)
        return result

    return cached


class Follower:
    """Reads one topic in a thread until the process ends: as a table, or with the reader from `open_reader`.

    While Kafka cannot be reached, it keeps the last rows and reports the error. It then recovers automatically and reads the topic from the
    start.
    """

    def __init__(self, kafka: KafkaCluster, topic: str, decode: Decode = decode_json, open_reader: OpenReader | None = None) -> None:
        self._open_reader = open_reader or (lambda: TableReader(kafka, topic, decode).opened())
        self._snapshot = Snapshot(kafka, topic)
        self._stopping = StopRequest()
        self._thread = threading.Thread(target=self._run, name=f"follow {topic}", daemon=True)
        _running.add(self)
        self._thread.start()

    @property
    def snapshot(self) -> Snapshot:
        """The newest state. Replaced as a whole, so any thread can read it without a lock."""
        return self._snapshot

    def stop(self) -> None:
        """Stops the thread and its consumer, and waits for both."""
        _running.discard(self)
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                follow([self._open_reader], self._publish, self._stopping, self._fail)
            except Exception as error:  # if the thread died, pages would look alive and never change
                _log.exception("reading %s failed", self._snapshot.topic)
                self._fail(f"{type(error).__name__}: {error}; the log of this program says more")
                self._stopping.wait(RETRY_SECONDS)

    def _publish(self, readers: Sequence[TableReader]) -> None:
        (reader,) = readers
        self._snapshot = Snapshot(
            self._snapshot.kafka,
            self._snapshot.topic,
            is_read=True,
            rows=tuple(reader.table.rows()),
            unreadable=reader.table.unreadable,
            newest_record_at=reader.table.newest_record_at,
        )

    def _fail(self, error: str) -> None:
        self._snapshot = replace(self._snapshot, error=error, failing_since=self._snapshot.failing_since or datetime.now(UTC))


_running: set[Follower] = set()


def followed() -> int:
    """How many topics are followed."""
    return len(_running)


def is_reading() -> bool:
    """Whether a topic that some page follows has neither been read nor failed yet."""
    return any(not follower.snapshot.is_read and follower.snapshot.error is None for follower in tuple(_running))
