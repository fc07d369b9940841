"""How the queries run, as records of topic `streaming-metrics`."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import orjson
from confluent_kafka import Producer
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from streamgauge.settings import Settings
from streamgauge.topics import STREAMING_METRICS


class ProgressToKafka(StreamingQueryListener):
    """Publishes every event of every query. It never waits for Kafka: what does not fit its queue is left out."""

    def __init__(self, settings: Settings) -> None:
        self._producer = Producer(
            {"bootstrap.servers": settings.bootstrap_servers, "linger.ms": 20, "queue.buffering.max.messages": 10_000, "log_level": 0}
        )
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Says that a query runs."""
        self._names[str(event.id)] = event.name or str(event.id)
        self._publish("started", event.name or str(event.id), {})

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Says what a micro-batch did."""
        progress = orjson.loads(event.progress.json)
        self._publish("progress", progress["name"], measures(progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Says that a query waits for records."""
        self._publish("idle", self._names.get(str(event.id), str(event.id)), {})

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Says that a query ended, and by what error if it was one."""
        error = event.exception.splitlines()[0] if event.exception else None
        self._publish("terminated", self._names.get(str(event.id), str(event.id)), {"error": error})

    def close(self) -> None:
        """Sends what waits, for at most two seconds."""
        self._producer.flush(2)

    def _publish(self, event: str, query: str, fields: dict[str, Any]) -> None:
        record = {
            "event": event,
            "query": query,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **fields,
        }
        with contextlib.suppress(BufferError):
            self._producer.produce(STREAMING_METRICS.name, key=query, value=orjson.dumps(record))
        self._producer.poll(0)


def measures(progress: dict[str, Any]) -> dict[str, Any]:
    """What is published of a progress, as Spark reports it in JSON: rows, rates (rows/s), durations (ms), watermark, state, lag (records)."""
    operators = progress["stateOperators"]
    return {
        "batch_id": progress["batchId"],
        "input_rows": sum(source["numInputRows"] for source in progress["sources"]),
        "input_rows_per_second": progress.get("inputRowsPerSecond"),
        "processed_rows_per_second": progress.get("processedRowsPerSecond"),
        "batch_ms": progress["batchDuration"],
        "duration_ms": progress["durationMs"],
        "watermark": progress.get("eventTime", {}).get("watermark"),
        "state_rows": sum(operator["numRowsTotal"] for operator in operators),
        "state_bytes": sum(operator["memoryUsedBytes"] for operator in operators),
        "rows_dropped_by_watermark": sum(operator["numRowsDroppedByWatermark"] for operator in operators),
        "source_lag": lag_of(progress["sources"]),
        "sink_rows": max(progress["sink"].get("numOutputRows", -1), 0),
    }


def lag_of(sources: list[dict[str, Any]]) -> dict[str, int]:
    """Records that each partition ("topic-0") still has to give, at the end of the batch."""
    lag: dict[str, int] = {}
    for source in sources:
        ends, latest = source.get("endOffset") or {}, source.get("latestOffset") or {}
        for topic, partitions in latest.items():
            for number, offset in partitions.items():
                lag[f"{topic}-{number}"] = max(offset - ends.get(topic, {}).get(number, 0), 0)
    return lag
