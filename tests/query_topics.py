"""Writes to Kafka what the pipeline tells of its queries."""

import time
from datetime import UTC, datetime, timedelta

import orjson
from confluent_kafka import Producer
from running import RETRY_SECONDS


def ago(**length):
    return (datetime.now(UTC) - timedelta(**length)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class QueryTopics:
    """Writes what the pipeline writes, to topics that the page reads."""

    def __init__(self, bootstrap_servers, names):
        self.names, self._producer = (
            names,
            Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "message.max.bytes": 10_000_000}),
        )

    def write(self, kind, key, value, headers=None, ahead_seconds=0):
        """Writes a record. ahead_seconds: of the clock of its writer."""
        timestamp_ms = round((time.time() + ahead_seconds) * 1000)
        self._producer.produce(self.names[kind], key=key, value=value, headers=headers, timestamp=timestamp_ms)
        assert self._producer.flush(RETRY_SECONDS) == 0, f"Kafka did not take a record in {RETRY_SECONDS} s"

    def state(self, query="counts", state="running", operators=(), **fields):
        measured = {
            "input_rows_per_second": 80.0,
            "processed_rows_per_second": 100.0,
            "batch_ms": 400,
            "state_rows": 10,
            "state_bytes": 1_500_000,
            "state_operators": operators,
        }
        progress = measured | {
            "time": ago(seconds=1),
            "watermark": ago(hours=10, minutes=30),
            "rows_dropped_by_watermark_total": 3,
            "source_lag": {"nest-logs-0": 5},
        }
        row = {
            "query": query,
            "state": state,
            "since": ago(minutes=1),
            "time": ago(hours=-1),  # so that however slow the machine, it is not silent
            "started_at": ago(minutes=1),
            "process": {"host": "here", "pid": 7},
            "run_id": "run",
            "error": None,
            "error_detail": None,
            "error_at": None,
            "source_offsets": {"nest-logs-0": 0},
            "progress": progress,
        }
        self.write("states", query, orjson.dumps(row | fields))

    def progress(self, query="counts", **fields):
        event = {
            "event": "progress",
            "query": query,
            "time": ago(seconds=1),
            "sink_rows": 7,
            "rows_dropped_by_watermark": 1,
            "input_rows_per_second": 80.0,
            "processed_rows_per_second": 100.0,
            "batch_ms": 400,
            "duration_ms": {"addBatch": 300, "queryPlanning": 40},
            "watermark_age_ms": None,
        }
        self.write("metrics", query, orjson.dumps(event | {"source_lag": {"a-0": 5}, "state_bytes": 1000} | fields))

    def letter(self, value, reason="not JSON", topic="nest-logs", ahead_seconds=0):
        told = {"topic": topic, "partition": "0", "offset": "12", "timestamp": ago(seconds=9), "reason": reason}
        self.write("letters", "key", value, [(name, text.encode()) for name, text in told.items()], ahead_seconds)
