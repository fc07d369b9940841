"""The topic type and the topics that all domains share. A domain's own topics are in contract/domains."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from infrastructure.rows import Count, Fields, Integer, Number, Offsets, Time
from infrastructure.settings import Settings

MAX_RECORD_BYTES = 10 * 1024 * 1024
"""The largest record on any topic. A 5 MB document fits, also as a dead letter."""
MAX_VALUE_BYTES = MAX_RECORD_BYTES - 64 * 1024
"""A longer value would not fit into its dead letter, which also has a key and headers."""

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


@cache
def topic_prefix() -> str:
    """STREAMGAUGE_TOPIC_PREFIX, which a process reads once. Raises StreamgaugeError when the settings are invalid."""
    return Settings.from_environment().topic_prefix


@dataclass(frozen=True)
class Topic:
    """A topic. Its key and value are described below its definition.

    plain_name: without STREAMGAUGE_TOPIC_PREFIX; tables and files are named after it. config: Kafka's topic settings. is_source: whether a
    producer writes it. has_windows: whether its keys hold a window, or the start of one, so that its old rows can expire.
    row: the fields of its values, if a page or a report reads them. is_avro: whether they are Avro in the Confluent wire format, and not JSON.
    counted: the field that says how much a row counts. written_by: the query that writes it, if that has another name.
    """

    plain_name: str
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict, hash=False)
    is_source: bool = False
    has_windows: bool = False
    row: type[Fields] = Fields
    is_avro: bool = False
    counted: str = ""
    written_by: str = ""

    @property
    def query(self) -> str:
        """The query that writes a result topic."""
        return self.written_by or self.plain_name

    @property
    def name(self) -> str:
        """The name in Kafka."""
        return topic_prefix() + self.plain_name

    @property
    def is_compacted(self) -> bool:
        """Whether the topic is a table: the last value per key wins, and a tombstone deletes the row."""
        return "compact" in self.config.get("cleanup.policy", "delete")

    @property
    def is_result(self) -> bool:
        """Whether the topic is a domain's table of results. Excludes the topics in SHARED."""
        return self.is_compacted and self not in SHARED


def compacted_topic(plain_name: str, row: type[Fields] = Fields, **more: Any) -> Topic:  # noqa: ANN401 - fields of Topic
    """A topic that is a table: one partition, compacted."""
    return Topic(plain_name, 1, COMPACTED, row=row, **more)


DEAD_LETTERS = Topic(
    "dead-letters",
    partitions=1,
    config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000), "max.message.bytes": str(MAX_RECORD_BYTES)},
)
"""Key: canonical JSON {"offset","partition","topic"} of the record that could not be used; the same record has the same key. Input that a
producer could not turn into a record has offset and partition -1, and also its SHA-256.
Value: the record's raw bytes, unchanged (null if it was null); headers topic, partition, offset, timestamp, reason as UTF-8.
"""


class QueryEvent(Fields):
    """An event of a query."""

    event: Literal["started", "progress", "idle", "terminated"]
    query: str
    time: Time


class BatchEvent(QueryEvent):
    """The event "progress": a micro-batch has ended. Rates are rows/s; None: Spark does not say.

    batch_ms: None in real-time mode, where a batch lasts from one checkpoint to the next.
    """

    sink_rows: Count | None
    rows_dropped_by_watermark: Count
    input_rows_per_second: Number | None
    processed_rows_per_second: Number | None
    batch_ms: Count | None
    duration_ms: dict[str, Count]
    source_lag: Offsets
    watermark_age_ms: Integer | None
    state_bytes: Count


STREAMING_METRICS = Topic(
    "streaming-metrics",
    partitions=1,
    config={"cleanup.policy": "delete", "retention.ms": str(24 * 3_600_000), "segment.ms": "3600000"},
    row=QueryEvent,
)
"""Key: query name, UTF-8.
Value: JSON, the events of a query, one record each: QueryEvent, BatchEvent of a batch, and more fields.
"""


class Process(Fields):
    """A process on a host."""

    host: str
    pid: Count


class OperatorState(Fields):
    """The state of a stateful operator. bytes: in memory. timers: how many are pending; None if Spark does not say."""

    operator: str
    rows: Count
    bytes: Count
    timers: Count | None


class Progress(Fields):
    """The newest micro-batch of a query: when it ended, and what was measured. Rates are rows/s; None: Spark does not say.

    batch_ms: None in real-time mode.
    """

    time: Time
    input_rows_per_second: Number | None
    processed_rows_per_second: Number | None
    batch_ms: Count | None
    watermark: Time | None
    state_rows: Count
    state_bytes: Count
    rows_dropped_by_watermark_total: Count
    source_lag: Offsets
    source_offsets: Offsets | None = None
    state_operators: list[OperatorState] | None = None


class QueryState(Fields):
    """The current state of a query. source_offsets: the next to read. progress: None before the first batch with records."""

    query: str
    state: Literal["running", "idle", "restarting", "stopped", "failed"]
    since: Time
    time: Time
    started_at: Time
    process: Process
    error: str | None
    error_detail: str | None
    error_at: Time | None
    progress: Progress | None
    source_offsets: Offsets | None = None


QUERY_STATES = compacted_topic("query-states", QueryState)
"""Key: query name, UTF-8. Value: QueryState, JSON; at least every 5 s while the query runs or restarts."""


class VerifiedRows(Fields):
    """How many rows were equal to those of the recount."""

    equal: Count


class Verdict(Fields):
    """The result of the last `streamgauge verify` of a query."""

    query: str
    time: Time
    verdict: Literal["right", "wrong", "not checked"]
    rows: VerifiedRows


VERDICTS = compacted_topic("verdicts", Verdict)
"""Key: query name, UTF-8. Value: Verdict, JSON, and more fields: what was compared, and the differences."""


class Alert(Fields):
    """Something that a person should look at. what: one line."""

    time: Time
    level: Literal["warning", "error", "resolved"]
    query: str
    what: str
    detail: str | None


ALERTS = Topic("alerts", partitions=1, config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000)}, row=Alert)
"""Key: query name, UTF-8. If the alert is a result of the query: canonical JSON that identifies the alert.
Value: Alert, JSON.
"""

SHARED = (DEAD_LETTERS, STREAMING_METRICS, QUERY_STATES, VERDICTS, ALERTS)
"""The topics that belong to no single domain."""
