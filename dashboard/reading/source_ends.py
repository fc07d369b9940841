"""The end offsets of the source topics, fetched in a thread so that pages never wait for Kafka."""

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import streamlit as st

from contract.kafka.cluster import KafkaCluster
from contract.kafka.topic_ends import TopicEnds

ASK_SECONDS = 2
POLLS_KEPT = 15 * 60 // ASK_SECONDS
Poll = tuple[datetime, Mapping[str, int]]
"""When the end offsets were asked for (UTC), and what they were, by partition ("topic-0")."""


class SourceEnds:
    """Polls Kafka for the end offsets of the partitions that were last passed to `of`."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._topic_ends = TopicEnds(kafka)
        self._partitions: tuple[str, ...] = ()
        self._polls: deque[Poll] = deque(maxlen=POLLS_KEPT)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="source ends", daemon=True)
        self._thread.start()

    def of(self, partitions: Iterable[str]) -> Mapping[str, int]:
        """The last known end offsets of `partitions` ("topic-0"). Empty at first."""
        self._partitions = tuple(partitions)
        return self._topic_ends.ends

    @property
    def polls(self) -> tuple[Poll, ...]:
        """The polls of the last 15 minutes, oldest first."""
        return tuple(self._polls)

    def stop(self) -> None:
        """Stops the thread."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(ASK_SECONDS):
            self._topic_ends.ask(self._partitions)
            if self._topic_ends.ends:
                self._polls.append((datetime.now(UTC), self._topic_ends.ends))


@st.cache_resource(show_spinner=False, on_release=SourceEnds.stop)
def source_ends(kafka: KafkaCluster) -> SourceEnds:
    """The instance of this process."""
    return SourceEnds(kafka)
