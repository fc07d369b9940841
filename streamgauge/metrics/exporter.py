"""Follows the topics in which the pipeline and the audit report, and keeps the figures for Prometheus current."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from contract.query_status import decode_state, source_partitions
from contract.topics import DEAD_LETTERS, QUERY_STATES, STREAMING_METRICS, VERDICTS, Verdict
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.follow import LOOK_SECONDS, OpenReader, Warnings, follow, rows_left_out
from infrastructure.kafka.result_table import TableReader
from infrastructure.kafka.topic_ends import TopicEnds
from infrastructure.process.stop_signals import StopRequest
from infrastructure.rows import decoder
from streamgauge.metrics.counters import Counters
from streamgauge.metrics.events import NewRecords
from streamgauge.metrics.gauges import GAUGES, Observation

POLLS_KEPT = 3600 // LOOK_SECONDS
CONNECTED = "streamgauge_exporter_connected"


class Figures(Collector):
    """Gives Prometheus the gauges of the last observation, which is None while Kafka does not answer: it may be outdated."""

    observation: Observation | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every gauge, in the order of GAUGES."""
        observation = self.observation
        yield GaugeMetricFamily(
            CONNECTED, "Whether the exporter reads Kafka: 1 or 0. At 0, all other gauges are absent", value=observation is not None
        )
        for gauge in GAUGES:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
            for labels, value in () if observation is None else gauge.samples(observation):
                family.add_metric(labels, value)
            yield family


class Exporter:
    """The figures, in `registry`, and what keeps them current.

    warn: gets a line when Kafka cannot be read, and on rows that are left out because they cannot, once for each cause.
    """

    def __init__(self, kafka: KafkaCluster, warn: Callable[[str], None]) -> None:
        self.registry = CollectorRegistry()
        self._kafka, self._warnings = kafka, Warnings(warn)
        self._figures, self._counters = Figures(), Counters(self.registry)
        self.registry.register(self._figures)
        self._polls: deque[tuple[datetime, Mapping[str, int]]] = deque(maxlen=POLLS_KEPT)
        self._events_at: dict[int, int] = {}
        self._letters_at: dict[int, int] = {}

    def follow(self, stop: StopRequest) -> None:
        """Follows Kafka until the stop is requested. While Kafka does not answer, it waits and tries again."""
        readers: list[OpenReader] = [
            lambda: NewRecords(self._kafka, STREAMING_METRICS.name, self._counters.count_event, self._events_at).opened(),
            lambda: NewRecords(self._kafka, DEAD_LETTERS.name, self._counters.count_letter, self._letters_at).opened(),
            lambda: TableReader(self._kafka, QUERY_STATES.name, decode_state).opened(),
            lambda: TableReader(self._kafka, VERDICTS.name, decoder(Verdict)).opened(),
        ]
        with closing(TopicEnds(self._kafka)) as ends:
            follow(readers, partial(self._look, ends), stop, self._fail)

    def _look(self, ends: TopicEnds, readers: Sequence[TableReader]) -> None:
        states, verdicts = (reader.table.rows() for reader in readers[2:])
        ends.ask(source_partitions(states))
        self._polls.append((datetime.now(UTC), ends.ends))
        self._counters.begin(row["query"] for row in states)
        self._warnings.tell(rows_left_out(readers))
        self._figures.observation = Observation(self._polls[-1][0], states, verdicts, tuple(self._polls))

    def _fail(self, error: str) -> None:
        self._figures.observation = None
        self._warnings.add(error)
