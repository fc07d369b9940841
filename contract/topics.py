"""The topic type and the topics that all domains share. A domain's own topics are in contract/domains."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LARGEST_RECORD_BYTES = 10 * 1024 * 1024
"""The largest record on any topic. A 5 MB document fits, also as a dead letter."""

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
    """A topic and its contract. `config` holds Kafka's topic settings. Producers write the topics with `is_source`."""

    name: str
    partitions: int
    key: str
    value: str
    config: Mapping[str, str] = field(default_factory=dict)
    is_source: bool = False

    @property
    def is_compacted(self) -> bool:
        """Whether the topic is a table: the last value per key wins, and a tombstone deletes the row."""
        return "compact" in self.config.get("cleanup.policy", "delete")

    @property
    def is_result(self) -> bool:
        """Whether the topic is a domain's table of results. Excludes the topics in SHARED."""
        return self.is_compacted and self not in SHARED


def compacted_topic(name: str, key: str, value: str) -> Topic:
    """A topic that is a table: one partition, compacted."""
    return Topic(name, 1, key, value, COMPACTED)


DEAD_LETTERS = Topic(
    name="dead-letters",
    partitions=1,
    key=(
        'canonical JSON {"offset","partition","topic"} of the record that could not be used; the same record has the same key. '
        "Input that a producer could not turn into a record has offset and partition -1, and also its SHA-256"
    ),
    value="the record's raw bytes, unchanged (null if it was null); headers topic, partition, offset, timestamp, reason as UTF-8",
    config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000), "max.message.bytes": str(LARGEST_RECORD_BYTES)},
)

STREAMING_METRICS = Topic(
    name="streaming-metrics",
    partitions=1,
    key="query name, UTF-8",
    value=(
        'JSON {"event": "started" | "progress" | "idle" | "terminated", "query", "time", "process": {"host", "pid"}, "run_id", ...}: '
        "the events of a query, one record each"
    ),
    config={"cleanup.policy": "delete", "retention.ms": str(24 * 3_600_000), "segment.ms": "3600000"},
)

QUERY_STATES = compacted_topic(
    name="query-states",
    key="query name, UTF-8",
    value=(
        'JSON {"query", "state": "running" | "idle" | "stopped" | "failed", "since", "time", "started_at", "process": {"host", "pid"}, "run_id", '
        '"error", "error_detail", "error_at", "source_offsets", "progress"}: the current state of the query, the whole row; at least every 5 s while it runs'
    ),
)

VERDICTS = compacted_topic(
    name="verdicts",
    key="query name, UTF-8",
    value=(
        'JSON {"query", "time", "verdict": "right" | "wrong" | "not checked", "sink", "batch", "records", "rows": {"compared", "equal", ...}, "problem"}: '
        "what the last `streamgauge verify` found of that query, the whole row"
    ),
)

ALERTS = Topic(
    name="alerts",
    partitions=1,
    key="query name, UTF-8; of an alert that a query writes as its result, canonical JSON of what tells two of them apart",
    value='JSON {"time", "level": "warning" | "error" | "resolved", "query", "what", "detail"}: something a person should look at; "what" is one line',
    config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000)},
)

SHARED = (DEAD_LETTERS, STREAMING_METRICS, QUERY_STATES, VERDICTS, ALERTS)
"""The topics that belong to no single domain."""
