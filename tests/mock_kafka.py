"""A broker without Java: the one that librdkafka has for tests. It knows no times of offsets, and creates a topic when a producer asks for it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer

from infrastructure.settings import Settings

START_MS = 1_767_261_600_000
"""2026-01-01T10:00:00Z."""


class MockKafka:
    """A broker with these topics, each of four partitions. settings: of programs that use it. It ends with this object."""

    def __init__(self, home: Path, topics: Iterable[str]) -> None:
        self.producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        for topic in topics:
            metadata = self.producer.list_topics(topic, timeout=10)
        (broker,) = metadata.brokers.values()
        self.settings = replace(Settings(), kafka_bootstrap_servers=f"{broker.host}:{broker.port}", home=home)

    def write(self, topic, *values, key=None, partition=0, second=0, headers=None):
        """Writes records of one second and the following ones after START_MS."""
        for number, value in enumerate(values):
            timestamp = START_MS + 1000 * (second + number)
            self.producer.produce(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
        assert self.producer.flush(10) == 0
