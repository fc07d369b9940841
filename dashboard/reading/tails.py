"""The newest records of topics that are not tables. One background thread per topic and process polls every few seconds."""

import logging
import threading

import streamlit as st
from confluent_kafka import Message

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.kafka.recent_records import Recent, RecentReader

LOOK_SECONDS = 3
_log = logging.getLogger(__name__)


class Tail:
    """Keeps the last `count` records of each partition of a topic. It reads no more than these, whatever the topic's rate.

    While Kafka cannot be reached, it keeps the last records. The page's tables report the problem.
    """

    def __init__(self, kafka: KafkaCluster, topic: str, count: int) -> None:
        self._kafka, self._topic, self._count = kafka, topic, count
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
                with RecentReader(self._kafka, self._topic, Recent(self._count), lambda message: message).opened() as reader:
                    self._look_again_and_again(reader)
            except StreamgaugeError as error:
                _log.info("the newest records of %s cannot be read: %s", self._topic, error)
            self._stopping.wait(LOOK_SECONDS)

    def _look_again_and_again(self, reader: RecentReader) -> None:
        while not self._stopping.is_set():
            if not reader.is_caught_up:
                reader.poll(0.2)
                continue
            self._records = tuple(reader.table.rows())
            self._stopping.wait(LOOK_SECONDS)
            reader.begin_again()


@st.cache_resource(show_spinner=False, on_release=Tail.stop)
def tail(kafka: KafkaCluster, topic: str, count: int) -> Tail:
    """The tail of that length of `topic`, one per process, started at the first call."""
    return Tail(kafka, topic, count)
