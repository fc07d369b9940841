"""The topic type and the topics that all domains share. A domain's own topics are in contract/domains."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_RECORD_BYTES = 10 * 1024 * 1024
"""The largest record on any topic. A 5 MB document fits, also as a dead letter."""
MAX_VALUE_BYTES = MAX_RECORD_BYTES - 64 * 1024
"""A longer value would not fit into a record beside the key and the headers of its dead letter."""

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "60000",
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "max.compaction.lag.ms": "120000",
    "delete.retention.ms": "86400000",
}
"""Settings of a result topic. Kafka never compacts the active segment; its defaults (1 GB, 7 days) leave a small topic uncompacted."""
A_WEEK = {"cleanup.policy": "delete", "retention.ms": str(7 * 24 * 3_600_000)}
"""Settings of a source topic."""


@dataclass(frozen=True)
class Topic:
    """A topic. Its key and value are described below its definition.

    config: Kafka's topic settings. is_source: whether a producer writes it. has_windows: whether its keys hold a window, or the start of
    one, so that its old rows can expire.
    """

    name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)
    is_source: bool = False
    has_windows: bool = False

    @property
    def is_compacted(self) -> bool:
        """Whether the topic is a table: the last value per key wins, and a tombstone deletes the row."""
        return "compact" in self.config.get("cleanup.policy", "delete")

    @property
    def is_result(self) -> bool:
        """Whether the topic is a domain's table of results. Excludes the topics in SHARED."""
        return self.is_compacted and self not in SHARED


def compacted_topic(name: str, *, has_windows: bool = False) -> Topic:
    """A topic that is a table: one partition, compacted."""
    return Topic(name, 1, COMPACTED, has_windows=has_windows)


DEAD_LETTERS = Topic(
    "dead-letters",
    partitions=1,
    config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000), "max.message.bytes": str(MAX_RECORD_BYTES)},
)
"""Key: canonical JSON {"offset","partition","topic"} of the record that could not be used; the same record has the same key. Input that a
producer could not turn into a record has offset and partition -1, and also its SHA-256.
Value: the record's raw bytes, unchanged (null if it was null); headers topic, partition, offset, timestamp, reason as UTF-8.
"""

STREAMING_METRICS = Topic(
    "streaming-metrics", partitions=1, config={"cleanup.policy": "delete", "retention.ms": str(24 * 3_600_000), "segment.ms": "3600000"}
)
"""Key: query name, UTF-8.
Value: JSON {"event": "started" | "progress" | "idle" | "terminated", "query", "time", "process": {"host", "pid"}, "run_id", ...}: the
events of a query, one record each.
"""

QUERY_STATES = compacted_topic("query-states")
"""Key: query name, UTF-8.
Value: JSON {"query", "state": "running" | "idle" | "restarting" | "stopped" | "failed", "since", "time", "started_at",
"process": {"host", "pid"}, "run_id", "error", "error_detail", "error_at", "source_offsets", "progress", "plan"}: the current state of the
query, the whole row; at least every 5 s while it runs or restarts. "plan" is null before the first batch with records; then the steps of Spark's plan, the result first:
[{"name", "detail", "inputs"}, ...].
"""

VERDICTS = compacted_topic("verdicts")
"""Key: query name, UTF-8.
Value: JSON {"query", "time", "verdict": "right" | "wrong" | "not checked", "sink", "batch", "records", "rows": {"compared", "equal",
...}, "problem"}: what the last `streamgauge verify` found of that query, the whole row.
"""

ALERTS = Topic("alerts", partitions=1, config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000)})
"""Key: query name, UTF-8; of an alert that a query writes as its result, canonical JSON of what tells two of them apart.
Value: JSON {"time", "level": "warning" | "error" | "resolved", "query", "what", "detail"}: something a person should look at; "what" is
one line.
"""

SHARED = (DEAD_LETTERS, STREAMING_METRICS, QUERY_STATES, VERDICTS, ALERTS)
"""The topics that belong to no single domain."""
