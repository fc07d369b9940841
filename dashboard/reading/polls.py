"""What Kafka is asked every few seconds, in a thread so that pages never wait: end offsets, and the newest records of topics that are no tables."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Generic, TypeVar

import streamlit as st
from confluent_kafka import Message

from contract.query_status import QueryStatus, source_partitions, statuses
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.follower import Snapshot
from infrastructure.kafka.recent_records import last_records
from infrastructure.kafka.topic_ends import TopicEnds

TAIL_SECONDS, ENDS_SECONDS = 3, 2
POLLS_KEPT = 15 * 60 // ENDS_SECONDS
Poll = tuple[datetime, Mapping[str, int]]
"""When the end offsets were asked for (UTC), and what they were, by partition ("topic-0")."""
T = TypeVar("T")
_log = logging.getLogger(__name__)


class Polled(Generic[T]):
    """The last answer of `ask`, which a thread calls every `seconds`.

    While Kafka cannot be reached, `answer` stays as it is. The page's tables report the problem.
    """

    def __init__(self, name: str, seconds: float, ask: Callable[[], T], first: T) -> None:
        self.answer = first
        self._name, self._seconds, self._ask = name, seconds, ask
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, and waits for it."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.answer = self._ask()
            except StreamgaugeError as error:
                _log.info("%s: %s", self._name, error)
            except Exception:  # if the thread died, pages would look alive and never change
                _log.exception("%s failed", self._name)
            self._stopping.wait(self._seconds)


class SourceEnds(Polled[Mapping[str, int]]):
    """Polls the end offsets of the partitions that were last passed to `of`."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._topic_ends = TopicEnds(kafka)
        self._partitions: tuple[str, ...] = ()
        self._polls: deque[Poll] = deque(maxlen=POLLS_KEPT)
        super().__init__("source ends", ENDS_SECONDS, self._ask_for_ends, {})

    def of(self, partitions: Iterable[str]) -> Mapping[str, int]:
        """The last known end offsets of `partitions` ("topic-0"). Empty at first."""
        self._partitions = tuple(partitions)
        return self.answer

    @property
    def polls(self) -> tuple[Poll, ...]:
        """The polls of the last 15 minutes, oldest first."""
        return tuple(self._polls)

    def _ask_for_ends(self) -> Mapping[str, int]:
        if self._topic_ends.ask(self._partitions):
            self._polls.append((datetime.now(UTC), self._topic_ends.ends))
        return self._topic_ends.ends


@st.cache_resource(show_spinner=False, on_release=SourceEnds.stop)
def source_ends(kafka: KafkaCluster) -> SourceEnds:
    """The instance of this process."""
    return SourceEnds(kafka)


def current_statuses(states: Snapshot, now: datetime) -> list[QueryStatus]:
    """The status of each query at `now`, by the end offsets that are known. states: of QUERY_STATES.

    While Kafka cannot be reached, the status when it was lost: that no query is heard then says nothing of them.
    """
    return statuses(states.rows, states.failing_since or now, source_ends(states.kafka).of(source_partitions(states.rows)))


@st.cache_resource(show_spinner=False, on_release=Polled.stop)
def tail(kafka: KafkaCluster, topic: str) -> Polled[list[Message]]:
    """The last record of each partition of `topic`, oldest first. No more than these are read, whatever the topic's rate."""
    return Polled(f"the newest records of {topic}", TAIL_SECONDS, lambda: last_records(kafka, topic, 1), [])
