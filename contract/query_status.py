"""The status of each query, computed from the rows of topic `query-states`. Pure functions, except `read_statuses`, which reads Kafka.

The topic is compacted, so reading it is fast: it has one row per query, however long ago the query ended and however many micro-batches
topic `streaming-metrics` holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from contract.kafka.result_table import Row, decode_json, expect, moment, read_rows
from contract.kafka.topic_ends import TopicEnds
from contract.settings import Settings
from contract.text import utc_text
from contract.topics import QUERY_STATES

HEARTBEAT_SECONDS = 5
"""How often, at least, the pipeline reports a query that it runs or restarts."""
SILENT_AFTER = timedelta(seconds=20)
"""Such a query without reports for longer than this counts as silent: its process is gone, or cannot reach Kafka."""

RUNNING, IDLE, RESTARTING, STOPPED, FAILED, SILENT = "running", "idle", "restarting", "stopped", "failed", "silent"
TROUBLES = (FAILED, SILENT, RESTARTING, STOPPED)
"""States in which a query processes nothing, worst first."""
_REPORTED_REGULARLY = (RUNNING, IDLE, RESTARTING)
_REPORTED = {*_REPORTED_REGULARLY, STOPPED, FAILED}
_NUMBERS = (
    "input_rows_per_second",
    "processed_rows_per_second",
    "batch_ms",
    "state_rows",
    "state_bytes",
    "rows_dropped_by_watermark_total",
)


@dataclass(frozen=True)
class QueryStatus:
    """The status of a query at one moment. Unknown values are None. Times are UTC.

    state: running, idle (waiting for records), restarting (after a failure), stopped, failed, or silent (it no longer reports).
    since: when it entered that state. heard_at: time of its last report. batch_at: when its last batch ended.
    rates: rows/s of the last batch; 0 when idle, None when not running. lag: records in the source beyond that batch.
    worst_partition: the partition with the largest lag, e.g. "nest-logs-0". watermark_age_ms: how far the watermark is behind the clock.
    state_rows, state_bytes: its state in memory. state_operators: the same by stateful operator (operator, rows, bytes), and the timers that
    wait (timers; None: it has none, or Spark does not report them). late_rows: late records dropped since it started. error: its last failure, kept after a
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
        """Whether it is processing nothing."""
        return self.state in TROUBLES

    @property
    def has_process(self) -> bool:
        """Whether a process runs it, or will restart it."""
        return self.state in _REPORTED_REGULARLY

    def as_row(self) -> Row:
        """The fields by name, times as ISO 8601 text with Z."""
        return {name: utc_text(value) if isinstance(value, datetime) else value for name, value in asdict(self).items()}


def decode_state(value: bytes) -> Row:
    """Decodes a record of topic `query-states`, with times as datetime. Raises KeyError, TypeError or ValueError for any other record."""
    row = decode_json(value)
    process = row["process"]
    expect(str, query=row["query"], host=process["host"])
    expect(int, pid=process["pid"])
    expect(str | None, error=row["error"], error_detail=row["error_detail"])
    if row["state"] not in _REPORTED:
        msg = f"state {row['state']!r}; expected one of {', '.join(sorted(_REPORTED))}"
        raise ValueError(msg)
    times: dict[str, datetime | None] = {name: moment(row[name]) for name in ("since", "time", "started_at")}
    # Rows of earlier versions have the offsets only in the last batch's progress.
    offsets = row["source_offsets"] if "source_offsets" in row else (row["progress"] or {}).get("source_offsets", {})
    expect(int, **offsets)
    times["error_at"] = _moment_or_none(row["error_at"])
    return row | times | {"source_offsets": offsets, "progress": _decoded_progress(row["progress"])}


def statuses(states: Iterable[Row], now: datetime, topic_ends: Mapping[str, int]) -> list[QueryStatus]:
    """The status of each query at `now`: troubles first, then by name.

    states: rows from `decode_state`. topic_ends: by partition ("topic-0"), the offset of the next record, where known.
    """
    found = [status_of(state, now, topic_ends) for state in states]
    return sorted(found, key=lambda status: (TROUBLES.index(status.state) if status.is_trouble else len(TROUBLES), status.query))


def status_of(state: Row, now: datetime, topic_ends: Mapping[str, int]) -> QueryStatus:
    """The status of one query at `now`."""
    is_silent = state["state"] in _REPORTED_REGULARLY and now - state["time"] > SILENT_AFTER
    status = SILENT if is_silent else state["state"]
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


def source_partitions(states: Iterable[Row]) -> list[str]:
    """The partitions ("topic-0") that the queries read."""
    return sorted({name for state in states for name in state["source_offsets"]})


def read_statuses(settings: Settings, topic_ends: TopicEnds | None = None) -> list[QueryStatus]:
    """The current status of every query that ever ran on this Kafka.

    topic_ends: pass one when calling repeatedly. Raises StreamgaugeError when Kafka cannot be read.
    """
    states = read_rows(settings.kafka, QUERY_STATES.name, decode_state)
    ends = topic_ends or TopicEnds(settings.kafka)
    ends.ask(source_partitions(states))
    return statuses(states, datetime.now(UTC), ends.ends)


def _lag(state: Row, topic_ends: Mapping[str, int]) -> dict[str, Any]:
    source_lag = {} if state["progress"] is None else state["progress"]["source_lag"]
    lag = source_lag | {name: max(topic_ends[name] - done, 0) for name, done in state["source_offsets"].items() if name in topic_ends}
    if not lag:
        return {}
    worst = max(lag, key=lambda name: (lag[name], name))
    return {"lag": sum(lag.values()), "worst_partition": worst, "worst_partition_lag": lag[worst]}


def _measured(progress: Row | None, status: str, now: datetime) -> dict[str, Any]:
    if progress is None:
        return {}
    rates = {name: progress[name] if status == RUNNING else 0.0 if status == IDLE else None for name in _NUMBERS[:2]}
    watermark = progress["watermark"]
    return rates | {
        **{name: progress[name] for name in ("batch_ms", "watermark", "state_rows", "state_bytes", "state_operators")},
        "batch_at": progress["time"],
        "watermark_age_ms": None if watermark is None else round((now - watermark).total_seconds() * 1000),
        "late_rows": progress["rows_dropped_by_watermark_total"],
    }


def _decoded_progress(progress: Row | None) -> Row | None:
    if progress is None:
        return None
    expect(int | float | None, **{name: progress[name] for name in _NUMBERS})
    expect(int, **progress["source_lag"])
    operators = progress.get("state_operators", [])  # absent from rows of earlier versions
    for operator in operators:
        expect(str, operator=operator["operator"])
        expect(int | None, **{name: operator[name] for name in ("rows", "bytes", "timers")})
    return progress | {
        "time": moment(progress["time"]),
        "watermark": _moment_or_none(progress["watermark"]),
        "state_operators": operators,
    }


def _moment_or_none(text: str | None) -> datetime | None:
    return None if text is None else moment(text)
