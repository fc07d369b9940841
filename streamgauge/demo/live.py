"""The figures of the demo: events in, rows out, lag, batch time."""

from collections.abc import Mapping
from typing import Any

import orjson
from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from contract.domains import TOPICS
from contract.process.waiting import REQUEST_SECONDS
from contract.settings import Settings
from contract.topics import STREAMING_METRICS

SOURCES = tuple(topic.name for topic in TOPICS if topic.is_source)
RESULTS = tuple(topic.name for topic in TOPICS if topic.is_result)


class LiveFigures:
    """Reads the figures that brokers and queries report. While a broker cannot be reached, they do not change and `is_away` is set.

    ends: the number of records written, by topic.
    """

    def __init__(self, settings: Settings) -> None:
        self._admin = settings.kafka.admin()
        self._consumer = settings.kafka.consumer()
        self._first: dict[str, int] | None = None
        self._progress: dict[str, dict[str, Any]] = {}
        self._late = 0
        self.ends: dict[str, int] = {}
        self.is_away = False

    def ask(self) -> None:
        """Reads the new figures."""
        try:
            topics = {name: tuple(topic.partitions) for name, topic in self._admin.list_topics(timeout=REQUEST_SECONDS).topics.items()}
            self.ends = self._ends({name: topics[name] for name in (*SOURCES, *RESULTS) if name in topics})
        except (KafkaException, TimeoutError):
            self.is_away = True
            return
        self.is_away, self._first = False, self._first or self.ends
        self._take_progress(topics.get(STREAMING_METRICS.name, ()))

    def line(self) -> str:
        """One line on the current state, counted from the first reading."""
        events, rows = self._since_the_first(SOURCES), self._since_the_first(RESULTS)
        away = " | Kafka does not answer" if self.is_away else ""
        if not self._progress:
            return f"events in {events:,} | Spark is starting{away}"
        lag = max(sum(progress["source_lag"].values()) for progress in self._progress.values())
        batch_ms = max(progress["batch_ms"] for progress in self._progress.values())
        return f"events in {events:,} | rows out {rows:,} | lag {lag:,} | longest batch {batch_ms:,} ms | late {self._late:,} | queries {len(self._progress)}{away}"

    def _since_the_first(self, topics: tuple[str, ...]) -> int:
        return sum(self.ends.get(topic, 0) - (self._first or {}).get(topic, 0) for topic in topics)

    def _ends(self, topics: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        partitions = {TopicPartition(name, number): latest for name, numbers in topics.items() for number in numbers}
        ends = dict.fromkeys(topics, 0)
        # Not Consumer.get_watermark_offsets: it waits for the consumer's own fetch, half a second each time.
        for of, answer in (self._admin.list_offsets(partitions) if partitions else {}).items():
            ends[of.topic] += answer.result(REQUEST_SECONDS).offset
        return ends

    def _take_progress(self, partitions: tuple[int, ...]) -> None:
        if len(partitions) != len(self._consumer.assignment()):
            self._consumer.assign([TopicPartition(STREAMING_METRICS.name, number, OFFSET_END) for number in partitions])
        for message in self._consumer.consume(1000, timeout=0):
            value = message.value()
            if message.error() is None and value is not None:
                record = orjson.loads(value)
                if record["event"] == "progress":
                    self._progress[record["query"]] = record
                    self._late += record["rows_dropped_by_watermark"]
                elif record["event"] == "terminated":
                    self._progress.pop(record["query"], None)
