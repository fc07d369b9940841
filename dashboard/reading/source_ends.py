"""The end offsets of the source topics, fetched in a thread so that pages never wait for Kafka."""

import threading
from collections.abc import Iterable, Mapping

import streamlit as st

from contract.kafka.cluster import KafkaCluster
from contract.kafka.topic_ends import TopicEnds

ASK_SECONDS = 2


class SourceEnds:
    """Polls Kafka for the end offsets of the partitions that were last passed to `of`."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._topic_ends = TopicEnds(kafka)
        self._partitions: tuple[str, ...] = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="source ends", daemon=True)
        self._thread.start()

    def of(self, partitions: Iterable[str]) -> Mapping[str, int]:
        """The last known end offsets of `partitions` ("topic-0"). Empty at first."""
        self._partitions = tuple(partitions)
        return self._topic_ends.ends

    def stop(self) -> None:
        """Stops the thread."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(ASK_SECONDS):
            self._topic_ends.ask(self._partitions)


@st.cache_resource(show_spinner=False, on_release=SourceEnds.stop)
def source_ends(kafka: KafkaCluster) -> SourceEnds:
    """The instance of this process."""
    return SourceEnds(kafka)
