"""The status of each query, computed from the rows of topic `query-states`. Pure functions, except `read_statuses`, which reads Kafka.

The topic is compacted, so reading it is fast: it has one row per query, however long ago the query ended and however many micro-batches
topic `streaming-metrics` holds.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from contract.topics import QUERY_STATES, BatchEvent, QueryEvent, QueryState
from infrastructure.kafka.result_table import read_to_end
from infrastructure.kafka.topic_ends import TopicEnds
from infrastructure.rows import Row, checked, decode_json, decoder
from infrastructure.settings import Settings
from infrastructure.text import utc_text

HEARTBEAT_SECONDS = 5
"""The longest time between two reports of a query that the pipeline runs or restarts."""
SILENT_AFTER = timedelta(seconds=20)
"""Such a query counts as silent after this time without a report: its process is gone, or cannot reach Kafka."""

RUNNING, IDLE, STARTING = "running", "idle", "starting"
RESTARTING, STOPPED, FAILED, SILENT = "restarting", "stopped", "failed", "silent"
TROUBLES = (FAILED, SILENT, RESTARTING, STOPPED)
"""States of a query that should process records, and does not; worst first."""
_REPORTED_REGULARLY = (RUNNING, IDLE, STARTING, RESTARTING)
_RATES = ("input_rows_per_second", "processed_rows_per_second")
_AS_MEASURED = ("batch_ms", "watermark", "state_rows", "state_bytes")
decode_state = decoder(QueryState)
"""Decodes a record of topic `query-states`, with times as datetime. Raises ValueError for any other record."""


def decode_event(value: bytes) -> Row:
    """Decodes a record of topic `streaming-metrics`: a BatchEvent if a batch has ended, else a QueryEvent. Raises as `decode_state`."""
    row = decode_json(value)
    return checked(BatchEvent if row.get("event") == "progress" else QueryEvent, row)


@dataclass(frozen=True)
class QueryStatus:
    """The status of a query at one moment. Unknown values are None. Times are UTC.

    state: running, idle (waiting for records), starting (its process starts others first), restarting (after a failure), stopped, failed, or
    silent (it no longer reports).
    since: when it entered that state. heard_at: time of its last report. batch_at: when its last batch ended.
    rates: rows/s of the last batch; 0 when idle, None when not running. lag: records in the source beyond that batch.
    worst_partition: the partition with the largest lag, e.g. "nest-logs-0". watermark_age_ms: how far the watermark is behind the clock.
    state_rows, state_bytes: its state in memory. state_operators: the same by stateful operator (operator, rows, bytes), and the timers that
    wait (timers; None: it has none, or Spark does not report them). late_rows: rows dropped as too late since it started. error: its last failure, kept after a
    restart; error_detail has more lines.
    """

    query: str
    state: str
    since: datetime
    heard_at: datetime
    started_at: datetime
    host: str
    pid: int
    batch_at: datetime | None = None
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    batch_ms: int | None = None
    lag: int | None = None
    worst_partition: str | None = None
    worst_partition_lag: int | None = None
    watermark: datetime | None = None
    watermark_age_ms: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    state_operators: Sequence[Row] = ()
    late_rows: int | None = None
    error: str | None = None
    error_at: datetime | None = None
    error_detail: str | None = None

    @property
    def is_trouble(self) -> bool:
        """Whether the query should process records, and does not."""
        return self.state in TROUBLES

    @property
    def has_process(self) -> bool:
        """Whether a process runs the query, or will start it."""
        return self.state in _REPORTED_REGULARLY

    def as_row(self) -> Row:
        """The fields by name, times as ISO 8601 text with Z."""
        return {name: utc_text(value) if isinstance(value, datetime) else value for name, value in asdict(self).items()}


def statuses(states: Iterable[Row], now: datetime, topic_ends: Mapping[str, int]) -> list[QueryStatus]:
    """The status of each query at `now`: troubles first, then by name.

    states: rows from `decode_state`. topic_ends: by partition ("topic-0"), the offset of the next record, where known.
    """
    unsorted = [status_of(state, now, topic_ends) for state in states]
    return sorted(unsorted, key=lambda status: (TROUBLES.index(status.state) if status.is_trouble else len(TROUBLES), status.query))


def status_of(state: Row, now: datetime, topic_ends: Mapping[str, int]) -> QueryStatus:
    """The status of one query at `now`."""
    # The topic has no state of its own for it, because earlier versions would refuse the row.
    reported = STARTING if state["state"] == RESTARTING and state["error"] is None else state["state"]
    is_silent = reported in _REPORTED_REGULARLY and now - state["time"] > SILENT_AFTER
    status = SILENT if is_silent else reported
    return QueryStatus(
        query=state["query"],
        state=status,
        since=state["time"] if is_silent else state["since"],
        heard_at=state["time"],
        started_at=state["started_at"],
        host=state["process"]["host"],
        pid=state["process"]["pid"],
        error=state["error"],
        error_at=state["error_at"],
        error_detail=state["error_detail"],
        **_lag(state, topic_ends),
        **_measured(state["progress"], status, now),
    )


def offsets_of(state: Row) -> Mapping[str, int]:
    """The next offset that a query reads of each partition ("topic-0"). Rows of earlier versions have it in the last batch's progress."""
    return state["source_offsets"] or (state["progress"] or {}).get("source_offsets") or {}


def source_partitions(states: Iterable[Row]) -> list[str]:
    """The partitions ("topic-0") that the queries read."""
    return sorted({name for state in states for name in offsets_of(state)})


def read_statuses(settings: Settings, warn: Callable[[str], None]) -> list[QueryStatus]:
    """The current status of every query that ever ran on this Kafka.

    warn: gets one line if there are rows that cannot be read. Raises StreamgaugeError when Kafka cannot be read.
    """
    states = read_to_end(settings.kafka, QUERY_STATES.name, decode_state, warn).rows()
    ends = TopicEnds(settings.kafka)
    ends.ask(source_partitions(states))
    return statuses(states, datetime.now(UTC), ends.ends)


def lag_by_partition(state: Row, topic_ends: Mapping[str, int]) -> dict[str, int]:
    """The records that a query has not read, by partition ("topic-0"). Where the end is not known, as of its last batch."""
    source_lag = {} if state["progress"] is None else state["progress"]["source_lag"]
    return source_lag | {name: max(topic_ends[name] - done, 0) for name, done in offsets_of(state).items() if name in topic_ends}


def waiting_since(offsets: Mapping[str, int], polls: Sequence[tuple[datetime, Mapping[str, int]]]) -> datetime | None:
    """When a record at or beyond `offsets` was first seen in the source. None if there is none.

    offsets: by partition ("topic-0"), the next one to read. polls: when the end offsets were asked for, and what they were, oldest first.
    """
    first = bisect_left(polls, x=True, key=lambda poll: any(poll[1].get(name, 0) > offset for name, offset in offsets.items()))
    return polls[first][0] if first < len(polls) else None


def _lag(state: Row, topic_ends: Mapping[str, int]) -> dict[str, Any]:
    lag = lag_by_partition(state, topic_ends)
    if not lag:
        return {}
    worst = max(lag, key=lambda name: (lag[name], name))
    return {"lag": sum(lag.values()), "worst_partition": worst, "worst_partition_lag": lag[worst]}


def _measured(progress: Row | None, status: str, now: datetime) -> dict[str, Any]:
    if progress is None:
        return {}
    rates = {name: progress[name] if status == RUNNING else 0.0 if status == IDLE else None for name in _RATES}
    watermark = progress["watermark"]
    return rates | {
        **{name: progress[name] for name in _AS_MEASURED},
        "state_operators": progress["state_operators"] or [],
        "batch_at": progress["time"],
        "watermark_age_ms": None if watermark is None else round((now - watermark).total_seconds() * 1000),
        "late_rows": progress["rows_dropped_by_watermark_total"],
    }
