"""The figures of the demo: events in, rows out, lag, batch time."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import TopicDescription

from contract.domains import TOPICS
from contract.domains.domain import Domain
from contract.query_status import decode_event, decode_state
from contract.topics import QUERY_STATES, STREAMING_METRICS, VERDICTS
from infrastructure.kafka.result_table import read_to_end
from infrastructure.kafka.topic_ends import LATEST, list_offsets
from infrastructure.process.waiting import REQUEST_SECONDS
from infrastructure.settings import Settings

SOURCES = tuple(topic.name for topic in TOPICS if topic.is_source)
RESULTS = tuple(topic.name for topic in TOPICS if topic.is_result)


def query_states(settings: Settings, domains: Sequence[Domain], since: datetime) -> dict[str, str]:
    """The states that the queries of `domains` have reported since that time, by query, as in topic `query-states`.

    A pipeline reports all its queries before it starts the first. Raises StreamgaugeError when Kafka cannot be read.
    """
    rows = read_to_end(settings.kafka, QUERY_STATES.name, decode_state).rows()
    return {row["query"]: row["state"] for row in rows if row["time"] >= since and any(domain.owns(row["query"]) for domain in domains)}


class LiveFigures:
    """Reads the figures that brokers and queries report. While a broker cannot be reached, they do not change and `is_away` is set.

    ends: the number of records written, by topic. A topic that is created again counts on.
    """

    def __init__(self, settings: Settings) -> None:
        self._admin = settings.kafka.admin()
        self._consumer = settings.kafka.consumer()
        self._offsets: dict[tuple[str, int], int] = {}  # by topic id: a topic that is created again has another
        self._first: Counter[str] = Counter()
        self._progress: dict[str, tuple[int, int | None]] = {}
        self._late = 0
        self.ends: Counter[str] = Counter()
        self.is_away = False

    def ask(self) -> None:
        try:
            topics = self._describe(*SOURCES, *RESULTS, VERDICTS.name, STREAMING_METRICS.name)
            wanted = [(name, partition.id) for name, topic in topics.items() for partition in topic.partitions]
            # Not Consumer.get_watermark_offsets: it waits for the consumer's own fetch, half a second each time.
            ends = list_offsets(self._admin, wanted, LATEST, REQUEST_SECONDS)
        except (KafkaException, TimeoutError):
            self.is_away = True
            return
        for (name, number), end in ends.items():
            key = str(topics[name].topic_id), number
            last_offset = self._offsets.get(key, 0)
            self._offsets[key] = max(end.offset, last_offset)  # the topic may be created again before its offsets are listed
            self.ends[name] += self._offsets[key] - last_offset
        self.is_away, self._first = False, self._first or self.ends.copy()
        metrics = topics.get(STREAMING_METRICS.name)
        self._take_progress([partition.id for partition in metrics.partitions] if metrics else [])

    def line(self) -> str:
        """One line on the current state, counted from the first reading."""
        events, rows = self._since_the_first(SOURCES), self._since_the_first(RESULTS)
        away = " | Kafka does not answer" if self.is_away else ""
        if not self._progress:  # in real-time mode, rows come long before a batch is complete
            return f"events in {events:,} | {f'rows out {rows:,}' if rows else 'Spark is starting'}{away}"
        lag = max(lag for lag, _ in self._progress.values())
        timed = [batch_ms for _, batch_ms in self._progress.values() if batch_ms is not None]
        longest = f" | longest batch {max(timed):,} ms" if timed else ""
        return f"events in {events:,} | rows out {rows:,} | lag {lag:,}{longest} | too late {self._late:,} | queries {len(self._progress)}{away}"

    def _describe(self, *names: str) -> dict[str, TopicDescription]:
        """The topics by name, without those that this client may not see, or that the broker does not know (yet)."""
        described = {}
        for name, answer in self._admin.describe_topics(TopicCollection(list(names)), request_timeout=REQUEST_SECONDS).items():
            try:
                described[name] = answer.result(REQUEST_SECONDS)
            except KafkaException as error:
                if error.args[0].code() not in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED}:
                    raise
        return described

    def _since_the_first(self, topics: tuple[str, ...]) -> int:
        return sum(self.ends[topic] - self._first[topic] for topic in topics)

    def _take_progress(self, partitions: Sequence[int]) -> None:
        if len(partitions) != len(self._consumer.assignment()):
            self._consumer.assign([TopicPartition(STREAMING_METRICS.name, number, OFFSET_END) for number in partitions])
        for message in self._consumer.consume(1000, timeout=0):
            value = message.value()
            if message.error() is None and value is not None:
                with suppress(ValueError):  # a record of another program
                    self._take(value)

    def _take(self, value: bytes) -> None:
        event = decode_event(value)
        if event["event"] == "progress":
            self._progress[event["query"]] = sum(event["source_lag"].values()), event["batch_ms"]
            self._late += event["rows_dropped_by_watermark"]
        elif event["event"] == "terminated":
            self._progress.pop(event["query"], None)
