"""Follows the topics in which the pipeline and the audit report, and keeps the figures for Prometheus current."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from contract.errors import StreamgaugeError
from contract.kafka.cluster import KafkaCluster
from contract.kafka.result_table import ResultTable, TableReader, left_out
from contract.kafka.topic_ends import TopicEnds
from contract.process.stop_signals import StopRequest
from contract.query_status import decode_state, source_partitions
from contract.rows import decoder
from contract.topics import DEAD_LETTERS, QUERY_STATES, STREAMING_METRICS, VERDICTS, Verdict
from streamgauge.metrics.counters import Counters
from streamgauge.metrics.events import NewRecords
from streamgauge.metrics.gauges import GAUGES, Seen

LOOK_SECONDS = 2
RETRY_SECONDS = 5
CHECK_SECONDS = 5
POLLS_KEPT = 3600 // LOOK_SECONDS
CONNECTED = "streamgauge_exporter_connected"


class Figures(Collector):
    """Gives Prometheus the gauges of what was last seen. seen: None while Kafka does not answer: what was true then may not be any more."""

    seen: Seen | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Every gauge, in the order of GAUGES."""
        seen = self.seen
        yield GaugeMetricFamily(
            CONNECTED, "Whether the exporter reads Kafka: 1 or 0. At 0, all other gauges are absent", value=seen is not None
        )
        for gauge in GAUGES:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
            for labels, value in () if seen is None else gauge.samples(seen):
                family.add_metric(labels, value)
            yield family


class Exporter:
    """The figures, in `registry`, and what keeps them current.

    warn: gets a line when Kafka cannot be read, and on rows that are left out because they cannot, once for each cause.
    """

    def __init__(self, kafka: KafkaCluster, warn: Callable[[str], None]) -> None:
        self.registry = CollectorRegistry()
        self._kafka, self._warn = kafka, warn
        self._figures, self._counters = Figures(), Counters(self.registry)
        self.registry.register(self._figures)
        self._polls: deque[tuple[datetime, Mapping[str, int]]] = deque(maxlen=POLLS_KEPT)
        self._events_at: dict[int, int] = {}
        self._letters_at: dict[int, int] = {}
        self._said = ""
        self._left_out: set[str] = set()

    def follow(self, stop: StopRequest) -> None:
        """Follows Kafka until the stop is requested. While Kafka does not answer, it waits and tries again."""
        while not stop.is_set():
            try:
                self._follow(stop)
            except StreamgaugeError as error:
                self._figures.seen = None
                if str(error) != self._said:
                    self._warn(str(error))
                self._said = str(error)
                stop.wait(RETRY_SECONDS)

    def _follow(self, stop: StopRequest) -> None:
        with ExitStack() as opened:

            def read(reader: TableReader) -> TableReader:
                opened.enter_context(reader.opened()).read_to_end()
                return reader

            # One after the other: what is made and not opened, because Kafka is away, would keep its threads.
            events = read(NewRecords(self._kafka, STREAMING_METRICS.name, self._counters.count_event, self._events_at))
            letters = read(NewRecords(self._kafka, DEAD_LETTERS.name, self._counters.count_letter, self._letters_at))
            states = read(TableReader(self._kafka, QUERY_STATES.name, decode_state))
            verdicts = read(TableReader(self._kafka, VERDICTS.name, decoder(Verdict)))
            readers, ends = (events, letters, states, verdicts), TopicEnds(self._kafka)
            opened.callback(ends.close)
            checked_at = time.monotonic()
            while not stop.is_set():
                for reader in readers:
                    until = time.monotonic() + LOOK_SECONDS  # of a flood, the rest is read after the next look
                    while reader.poll(0) and time.monotonic() < until:
                        pass
                rows = states.table.rows()
                ends.ask(source_partitions(rows))
                self._polls.append((datetime.now(UTC), ends.ends))
                self._counters.begin(row["query"] for row in rows)
                self._said = ""
                self._tell_left_out({QUERY_STATES.name: states.table, VERDICTS.name: verdicts.table})
                self._figures.seen = Seen(self._polls[-1][0], rows, verdicts.table.rows(), tuple(self._polls))
                if time.monotonic() - checked_at > CHECK_SECONDS:
                    for reader in readers:
                        reader.check()
                    checked_at = time.monotonic()
                stop.wait(LOOK_SECONDS)

    def _tell_left_out(self, tables: Mapping[str, ResultTable]) -> None:
        found = {left_out(topic, table.unreadable) for topic, table in tables.items() if table.unreadable}
        for line in found - self._left_out:
            self._warn(line)
        self._left_out = found
