"""Pure functions from Spark's reports on a micro-batch to the fields of topic `streaming-metrics`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

_NOT_YET = "1970-01-01T00:00:00.000Z"


def measures(progress: dict[str, Any], now: datetime, topic_ends: Mapping[str, int], *, in_real_time: bool = False) -> dict[str, Any]:
    """The fields to publish for a progress report, in Spark's JSON.

    topic_ends: the known end offset of each partition ("topic-0").
    in_real_time: whether a batch lasts from one checkpoint to the next, so that its length does not say how long rows take.
    Rows are counts, rates rows/s, durations ms, lag records. Values that Spark does not report are None.
    """
    operators, sink_rows = progress["stateOperators"], progress["sink"].get("numOutputRows", -1)
    watermark = progress.get("eventTime", {}).get("watermark", _NOT_YET)
    return {
        "batch_id": progress["batchId"],
        "batch_started_at": progress["timestamp"],
        "input_rows": sum(source["numInputRows"] for source in progress["sources"]),
        "input_rows_per_second": progress.get("inputRowsPerSecond"),
        "processed_rows_per_second": None if in_real_time else progress.get("processedRowsPerSecond"),
        "batch_ms": None if in_real_time else progress["batchDuration"],
        "duration_ms": progress["durationMs"],
        "watermark": None if watermark == _NOT_YET else watermark,
        "watermark_age_ms": None if watermark == _NOT_YET else round((now - datetime.fromisoformat(watermark)).total_seconds() * 1000),
        "state_rows": sum(operator["numRowsTotal"] for operator in operators),
        "state_bytes": sum(operator["memoryUsedBytes"] for operator in operators),
        "state_operators": [_operator_state(operator) for operator in operators],
        "rows_dropped_by_watermark": sum(operator["numRowsDroppedByWatermark"] for operator in operators),
        "source_lag": lag_of(progress["sources"], topic_ends),
        "source_offsets": {name: offset for source in progress["sources"] for name, offset in _partitions(source.get("endOffset")).items()},
        "sink_rows": sink_rows if sink_rows >= 0 else None,
    }


def _operator_state(operator: dict[str, Any]) -> dict[str, Any]:
    """The state of a stateful operator. bytes: in memory. timers: the number that wait; None if it has none, or Spark does not report how many."""
    metrics = operator.get("customMetrics", {})
    # Spark keeps each timer in two internal tables, and counts the rows of all internal tables. Lists and times to live have some too.
    has_others = any(count and ("List" in name or "TTLVars" in name) for name, count in metrics.items())
    timers = (
        None if has_others or not metrics.get("rocksdbNumInternalColumnFamilies") else metrics["rocksdbNumInternalColFamiliesKeys"] // 2
    )
    return {
        "operator": operator["operatorName"],
        "rows": operator["numRowsTotal"],
        "bytes": operator["memoryUsedBytes"],
        "timers": timers,
    }


def lag_of(sources: list[dict[str, Any]], topic_ends: Mapping[str, int]) -> dict[str, int]:
    """Records that remain to be read in each partition ("topic-0") at the end of the batch.

    Spark knows the end offsets only as of the start of the batch; `topic_ends` covers what has arrived since.
    """
    lag: dict[str, int] = {}
    for source in sources:
        done, latest = _partitions(source.get("endOffset")), _partitions(source.get("latestOffset"))
        for name in latest | done:
            end = max(latest.get(name, 0), topic_ends.get(name, 0))
            lag[name] = max(end - done.get(name, 0), 0)
    return lag


def _partitions(offsets: object) -> dict[str, int]:
    """Offsets by partition ("topic-0") of a Kafka source's {topic: {partition: offset}}. Empty for other sources."""
    if not isinstance(offsets, dict):
        return {}
    by_topic = {topic: partitions for topic, partitions in offsets.items() if isinstance(partitions, dict)}
    return {f"{topic}-{number}": offset for topic, partitions in by_topic.items() for number, offset in partitions.items()}
