"""The newest records of topics that are not tables. One background thread per topic and process polls every few seconds."""

import logging
import threading

import streamlit as st
from confluent_kafka import Message

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.kafka.recent_records import last_records

LOOK_SECONDS = 3
_log = logging.getLogger(__name__)


class Tail:
    """Keeps the last record of each partition of a topic. It reads no more than these, whatever the topic's rate.

    While Kafka cannot be reached, it keeps the last records. The page's tables report the problem.
    """

    def __init__(self, kafka: KafkaCluster, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        self._records: tuple[Message, ...] = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"tail {topic}", daemon=True)
        self._thread.start()

    @property
    def records(self) -> tuple[Message, ...]:
        """The last records, oldest first by Kafka's timestamp. Replaced as a whole."""
        return self._records

    def stop(self) -> None:
        """Stops the thread and its consumer, and waits for both."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._records = tuple(last_records(self._kafka, self._topic, 1))
            except StreamgaugeError as error:
                _log.info("the newest records of %s cannot be read: %s", self._topic, error)
            self._stopping.wait(LOOK_SECONDS)


@st.cache_resource(show_spinner=False, on_release=Tail.stop)
def tail(kafka: KafkaCluster, topic: str) -> Tail:
    """The tail of `topic`, one per process, started at the first call."""
    return Tail(kafka, topic)
