"""The figures that only grow: counted from the events of the queries, and from dead letters, since the exporter was started."""

from collections.abc import Iterable

import orjson
from confluent_kafka import Message
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from contract.topics import BatchEvent, QueryEvent
from infrastructure.kafka.dead_letters import letter_of
from infrastructure.rows import Count, checked, decode_json
from infrastructure.text import printable

BATCH_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
MOST_REASONS = 100
"""More pairs of a topic and a reason would be too many series for Prometheus."""
OTHER = "other"


class _Batch(BatchEvent):
    """A batch, with the rows that it read."""

    input_rows: Count


class _End(QueryEvent):
    """The end of a run. error: None if it was stopped."""

    error: str | None


class Counters:
    """The counters, in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        self._input = counter("streamgauge_query_input_rows", "Rows that the query has read", "query")
        self._output = counter("streamgauge_query_output_rows", "Rows that the query has written, where Spark knows how many", "query")
        self._late = counter("streamgauge_query_late_rows", "Rows that the query has dropped as too late", "query")
        self._starts = counter("streamgauge_query_starts", "Starts of the query, those after a failure included", "query")
        self._failures = counter("streamgauge_query_failures", "Failures of the query", "query")
        self._letters = counter(
            "streamgauge_dead_letters",
            f'Dead letters, by the topic of their records. After {MOST_REASONS} reasons, others count under "{OTHER}"',
            "topic",
            "reason",
        )
        self._batches = Histogram(
            "streamgauge_query_batch_duration_seconds",
            "How long batches took, in seconds; not in real-time mode",
            ["query"],
            buckets=BATCH_SECONDS,
            registry=registry,
        )
        self._known: set[str] = set()
        self._reasons: set[tuple[str, str]] = set()

    def begin(self, queries: Iterable[str]) -> None:
        """Gives each query its counters, so that Prometheus sees them grow from 0."""
        for query in set(queries) - self._known:
            self._known.add(query)
            for metric in (self._input, self._output, self._late, self._starts, self._failures, self._batches):
                metric.labels(query)

    def count_event(self, message: Message) -> None:
        """Counts an event of a query. Ignores other records."""
        try:
            row = decode_json(message.value() or b"")
            event = checked(QueryEvent, row)
            match event["event"]:
                case "started":
                    self._starts.labels(event["query"]).inc()
                case "progress":
                    self._count_batch(checked(_Batch, row))
                case "terminated" if checked(_End, row)["error"] is not None:
                    self._failures.labels(event["query"]).inc()
        except (ValueError, orjson.JSONDecodeError):
            return

    def count_letter(self, message: Message) -> None:
        """Counts a dead letter. Ignores other records."""
        try:
            letter = letter_of(message)
        except (KeyError, TypeError, UnicodeDecodeError):
            return
        labels = printable(letter["topic"] or ""), printable(letter["reason"])
        if labels not in self._reasons and len(self._reasons) >= MOST_REASONS:
            labels = OTHER, OTHER
        self._reasons.add(labels)
        self._letters.labels(*labels).inc()

    def _count_batch(self, batch: dict[str, object]) -> None:
        query = str(batch["query"])
        for counter, field in ((self._input, "input_rows"), (self._output, "sink_rows"), (self._late, "rows_dropped_by_watermark")):
            if isinstance(rows := batch[field], int):
                counter.labels(query).inc(rows)
        if isinstance(milliseconds := batch["batch_ms"], int):
            self._batches.labels(query).observe(milliseconds / 1000)
