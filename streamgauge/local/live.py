"""The figures of the demo's live line: events in, rows out, lag, batch time."""

from collections.abc import Mapping
from typing import Any

import orjson
from confluent_kafka import OFFSET_END, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from streamgauge.settings import Settings
from streamgauge.topics import STREAMING_METRICS, TOPICS, Topic

TIMEOUT_SECONDS = 2
SOURCES = tuple(topic for topic in TOPICS if topic.is_source)
RESULTS = tuple(topic for topic in TOPICS if topic.is_result)


class LiveFigures:
    """Reads what the brokers and the queries say of themselves; a broker that does not answer makes a line that says so."""

    def __init__(self, settings: Settings) -> None:
        self._admin = settings.kafka.admin()
        self._consumer = settings.kafka.consumer()
        self._before: tuple[int, int] | None = None
        self._progress: dict[str, dict[str, Any]] = {}

    def line(self) -> str:
        """One line about this second, counted from the first line."""
        try:
            partitions = {name: tuple(topic.partitions) for name, topic in self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics.items()}
            now = self._records(SOURCES, partitions), self._records(RESULTS, partitions)
        except (KafkaException, TimeoutError):
            return "Kafka does not answer"
        self._before = self._before or now
        events, rows = now[0] - self._before[0], now[1] - self._before[1]
        self._take_progress(partitions.get(STREAMING_METRICS.name, ()))
        if not self._progress:
            return f"events in {events:,} | Spark is starting"
        lag = max(sum(progress["source_lag"].values()) for progress in self._progress.values())
        batch_ms = max(progress["batch_ms"] for progress in self._progress.values())
        late = sum(progress["late"] for progress in self._progress.values())
        return f"events in {events:,} | rows out {rows:,} | lag {lag:,} | longest batch {batch_ms:,} ms | late {late:,} | queries {len(self._progress)}"

    def _records(self, topics: tuple[Topic, ...], partitions: Mapping[str, tuple[int, ...]]) -> int:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(topic.name, number): latest for topic in topics for number in partitions.get(topic.name, ())}
        # Not Consumer.get_watermark_offsets: it waits behind the consumer's own fetch, half a second at a time.
        answers = self._admin.list_offsets(asked) if asked else {}
        return sum(answer.result(TIMEOUT_SECONDS).offset for answer in answers.values())

    def _take_progress(self, partitions: tuple[int, ...]) -> None:
        if len(partitions) != len(self._consumer.assignment()):
            self._consumer.assign([TopicPartition(STREAMING_METRICS.name, number, OFFSET_END) for number in partitions])
        for message in self._consumer.consume(1000, timeout=0):
            value = message.value()
            if message.error() is None and value is not None:
                record = orjson.loads(value)
                if record["event"] == "progress":
                    late = self._progress.get(record["query"], {}).get("late", 0) + record["rows_dropped_by_watermark"]
                    self._progress[record["query"]] = {**record, "late": late}
