"""Where the source topics end by now, for the pages: asked for in a thread, so that no page waits for Kafka."""

import threading
from collections.abc import Iterable, Mapping

import streamlit as st

from contract.kafka.cluster import KafkaCluster
from contract.kafka.topic_ends import TopicEnds

ASK_SECONDS = 2


class SourceEnds:
    """Asks Kafka again and again for the ends of the partitions that were named last."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._topic_ends = TopicEnds(kafka)
        self._partitions: tuple[str, ...] = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="source ends", daemon=True)
        self._thread.start()

    def of(self, partitions: Iterable[str]) -> Mapping[str, int]:
        """What is known of the ends of `partitions` ("topic-0"): nothing at first, and from then on what was heard last."""
        self._partitions = tuple(partitions)
        return self._topic_ends.ends

    def stop(self) -> None:
        """Ends the thread."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(ASK_SECONDS):
            self._topic_ends.ask(self._partitions)


@st.cache_resource(show_spinner=False, on_release=SourceEnds.stop)
def source_ends(kafka: KafkaCluster) -> SourceEnds:
    """The one of this process."""
    return SourceEnds(kafka)
