"""`streamgauge traces`: the spans that a collector decodes, of the events on a broker without Java."""

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

import orjson
from foreign_rows import valid
from mock_kafka import MockKafka
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from running import eventually
from web_server import Quiet, answering

from contract.topics import STREAMING_METRICS
from infrastructure.process.stop_signals import StopRequest
from infrastructure.rows import checked
from streamgauge.metrics.events import Batch, follow_events
from streamgauge.metrics.traces import Traces

AT = 1_767_270_600  # 2026-01-01T12:30:00Z
STARTED_AT = {"batch_started_at": "2026-01-01T12:30:00.000Z", "time": "2026-01-01T12:30:10.000Z"}
BATCH = valid(Batch.core_schema()) | STARTED_AT | {"event": "progress", "query": "nest-camera-stats", "batch_ms": 2500, "batch_id": 7}
BATCH |= {"duration_ms": {"addBatch": 2000}, "sink_rows": None}
IN_REAL_TIME = BATCH | {"query": "nest-live", "batch_ms": None}
FAILED = {
    "event": "terminated",
    "query": "nest-archive",
    "time": "2026-01-01T12:30:00.000Z",
    "run_id": "1",
    "error": "boom",
    "error_detail": "",
}


def spans_of(request):
    return [span for of in request.resource_spans for scope in of.scope_spans for span in scope.spans]


@contextmanager
def collecting(monkeypatch):
    """A collector, to which OpenTelemetry's variables lead. Gives the list of what it has got: path and request."""
    requests = []

    class Collector(Quiet, BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
            requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

    with answering(Collector) as address:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        yield requests


def test_a_collector_gets_a_span_of_each_batch_and_of_each_failure(tmp_path, monkeypatch):
    kafka, seen = MockKafka(tmp_path, [STREAMING_METRICS.name]), threading.Event()
    with collecting(monkeypatch) as requests:
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        traces, stop = Traces(), StopRequest()

        def tell(event):
            seen.set()
            traces.tell(event)

        # This broker has no controller, which the follower asks for every few seconds: it says so, and goes on.
        thread = threading.Thread(target=follow_events, args=[kafka.settings.kafka, tell, stop, print])
        thread.start()
        try:
            stopped = FAILED | {"error": None, "error_detail": None}
            eventually(lambda: kafka.write(STREAMING_METRICS.name, orjson.dumps(stopped)) or seen.is_set(), "the topic to be followed")
            kafka.write(STREAMING_METRICS.name, *map(orjson.dumps, (BATCH, IN_REAL_TIME, FAILED)))
            eventually(lambda: sum(len(spans_of(request)) for _, request in requests) == 3, "three spans")
        finally:
            stop.set()
            thread.join()
            traces.close()

    assert {path for path, _ in requests} == {"/v1/traces"}
    resource = {one.key: one.value.string_value for one in requests[0][1].resource_spans[0].resource.attributes}
    assert (resource["service.name"], resource["deployment.environment"]) == ("streamgauge", "test")
    batch, in_real_time, failure = [span for _, request in requests for span in spans_of(request)]
    assert (batch.name, batch.start_time_unix_nano, batch.end_time_unix_nano) == (
        "nest-camera-stats",
        AT * 10**9,
        AT * 10**9 + 2_500_000_000,
    )
    attributes = {one.key: one.value.int_value for one in batch.attributes if one.value.HasField("int_value")}
    assert (attributes["streamgauge.batch_id"], attributes["streamgauge.duration_ms.addBatch"]) == (7, 2000)
    assert "streamgauge.sink_rows" not in attributes
    assert in_real_time.end_time_unix_nano == (AT + 10) * 10**9
    assert (failure.name, failure.status.code, failure.status.message) == ("nest-archive", 2, "boom")


def test_times_of_another_program_that_a_span_cannot_have_lose_no_other_span(monkeypatch):
    with collecting(monkeypatch) as requests:
        traces = Traces()
        for odd in ({"batch_ms": 10**15}, {"batch_started_at": "2999-01-01T00:00:00Z"}, {"batch_started_at": "1000-01-01T00:00:00Z"}, {}):
            traces.tell(checked(Batch, BATCH | odd))
        traces.close()
    spans = [span for _, request in requests for span in spans_of(request)]
    assert [span.start_time_unix_nano for span in spans] == [AT * 10**9, 2**64 - 1, 0, AT * 10**9]
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
