"""The newest records of topics that are no tables: one background thread a topic and process, which looks again every few seconds."""

import logging
import threading
import time

import streamlit as st
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from streamgauge.kafka_cluster import KafkaCluster

LOOK_SECONDS = 3
ANSWER_SECONDS = 5
_log = logging.getLogger(__name__)


class Tail:
    """Keeps the last `count` records of each partition of a topic. It reads no more than these, however much the topic is written to.

    While Kafka is away it keeps what it saw last: what is wrong with Kafka, the page's tables say.
    """

    def __init__(self, kafka: KafkaCluster, topic: str, count: int) -> None:
        self._kafka, self._topic, self._count = kafka, topic, count
        self._records: tuple[Message, ...] = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"tail {topic}", daemon=True)
        self._thread.start()

    @property
    def records(self) -> tuple[Message, ...]:
        """What was seen last, oldest first by Kafka's timestamp; it is replaced as a whole."""
        return self._records

    def stop(self) -> None:
        """Ends the thread and its consumer, and waits until both are gone."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        consumer = self._kafka.consumer({"enable.partition.eof": True, "error_cb": lambda _: None})
        try:
            while not self._stopping.is_set():
                try:
                    self._records = tuple(sorted(self._look(consumer), key=lambda record: record.timestamp()[1]))
                except KafkaException as error:
                    _log.info("the newest records of %s cannot be read: %s", self._topic, error)
                self._stopping.wait(LOOK_SECONDS)
        finally:
            consumer.close()

    def _look(self, consumer: Consumer) -> list[Message]:
        """Raises KafkaException when Kafka does not answer, or has no such topic."""
        described = consumer.list_topics(self._topic, ANSWER_SECONDS).topics[self._topic]
        if described.error is not None:
            raise KafkaException(described.error)
        starts, ends = [], {}
        for number in described.partitions:
            first, end = consumer.get_watermark_offsets(TopicPartition(self._topic, number), ANSWER_SECONDS)
            if first < end:
                starts.append(TopicPartition(self._topic, number, max(first, end - self._count)))
                ends[number] = end
        consumer.assign(starts)
        return self._until(consumer, ends)

    def _until(self, consumer: Consumer, ends: dict[int, int]) -> list[Message]:
        found: list[Message] = []
        deadline = time.monotonic() + ANSWER_SECONDS
        while ends and time.monotonic() < deadline and not self._stopping.is_set():
            for message in consumer.consume(self._count, timeout=0.2):
                error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
                if error is None:
                    found.append(message)
                if offset + 1 >= ends.get(partition, 0) or (error is not None and error.code() == KafkaError._PARTITION_EOF):
                    ends.pop(partition, None)
        return found


@st.cache_resource(show_spinner=False, on_release=Tail.stop)
def tail(kafka: KafkaCluster, topic: str, count: int) -> Tail:
    """The one tail of that length of `topic` in this process, started at the first call."""
    return Tail(kafka, topic, count)
