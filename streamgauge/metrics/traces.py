"""Sends each micro-batch as a span, by OTLP."""

from datetime import datetime

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import StatusCode

from infrastructure.rows import Row

_FIELDS = ("query", "run_id", "batch_id", "input_rows", "sink_rows", "rows_dropped_by_watermark", "state_bytes", "watermark_age_ms")
_LAST_NS = 2**64 - 1


class Traces:
    """Sends spans by OpenTelemetry's SDK, which its own variables configure. It tries again for some seconds, and logs what it loses."""

    def __init__(self) -> None:
        named = Resource({"service.name": "streamgauge"}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=named)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("streamgauge")

    def tell(self, event: Row) -> None:
        """Sends a span for the end of a batch, and one with an error for the failure of a run. event: one of metrics.events."""
        if event["event"] == "progress":
            self._tell_batch(event)
        elif event.get("error"):
            span = self._tracer.start_span(event["query"], start_time=_ns(event["time"]), attributes=_attributes(event))
            span.set_status(StatusCode.ERROR, event["error"])
            span.end(_ns(event["time"]))

    def close(self) -> None:
        """Sends the waiting spans."""
        self._provider.shutdown()

    def _tell_batch(self, batch: Row) -> None:
        """In real-time mode, the duration of a batch is the time from its start to its event."""
        start_ns = _ns(batch["batch_started_at"])
        end_ns = _ns(batch["time"]) if batch["batch_ms"] is None else min(start_ns + batch["batch_ms"] * 1_000_000, _LAST_NS)
        parts = {f"streamgauge.duration_ms.{part}": ms for part, ms in batch["duration_ms"].items()}
        span = self._tracer.start_span(batch["query"], start_time=start_ns, attributes=_attributes(batch) | parts)
        span.end(max(start_ns, end_ns))


def _attributes(event: Row) -> dict[str, str | int]:
    return {f"streamgauge.{name}": event[name] for name in _FIELDS if event.get(name) is not None}


def _ns(time: datetime) -> int:
    """The time in ns since 1970, from 0 to _LAST_NS: another would lose all spans that are sent with it."""
    return min(max(0, round(time.timestamp() * 1_000_000) * 1000), _LAST_NS)
