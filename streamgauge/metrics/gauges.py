"""The figures that are true at a moment: from the state of each query, the end of its source, and what was last verified. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from contract.query_status import (
    FAILED,
    IDLE,
    RESTARTING,
    RUNNING,
    SILENT,
    STARTING,
    STOPPED,
    QueryStatus,
    lag_by_partition,
    offsets_of,
    status_of,
    waiting_since,
)
from infrastructure.rows import Row

STATES = (RUNNING, IDLE, STARTING, RESTARTING, STOPPED, FAILED, SILENT)
VERDICTS = ("right", "wrong", "not checked")
Sample = tuple[Sequence[str], float]
"""The values of the labels, and the figure."""


@dataclass(frozen=True)
class Observation:
    """The content of the topics at `now`. states, verdicts: rows of the topics. polls: see `waiting_since`; the last one was at `now`."""

    now: datetime
    states: Sequence[Row]
    verdicts: Sequence[Row]
    polls: Sequence[tuple[datetime, Mapping[str, int]]]

    @property
    def ends(self) -> Mapping[str, int]:
        """The offset of the next record, by partition ("topic-0"), where known."""
        return self.polls[-1][1]


@dataclass(frozen=True)
class Gauge:
    """A figure by its labels. help: what it is, with its unit."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Observation], Iterable[Sample]]


def _by_query(figure: Callable[[QueryStatus], float | None]) -> Callable[[Observation], Iterator[Sample]]:
    """A figure of each query whose status has it."""

    def samples(observation: Observation) -> Iterator[Sample]:
        for state in observation.states:
            status = status_of(state, observation.now, observation.ends)
            if (value := figure(status)) is not None:
                yield (status.query,), value

    return samples


def _states(observation: Observation) -> Iterator[Sample]:
    for row in observation.states:
        current = status_of(row, observation.now, observation.ends).state
        yield from (((row["query"], state), state == current) for state in STATES)


def _lag(observation: Observation) -> Iterator[Sample]:
    for row in observation.states:
        for partition, lag in lag_by_partition(row, observation.ends).items():
            topic, _, number = partition.rpartition("-")
            yield (row["query"], topic, number), lag


def _delay(observation: Observation) -> Iterator[Sample]:
    for row in observation.states:
        if (offsets := offsets_of(row)) and offsets.keys() <= observation.ends.keys():
            since = waiting_since(offsets, observation.polls)
            yield (row["query"],), 0 if since is None else (observation.now - since).total_seconds()


def _ends(observation: Observation) -> Iterator[Sample]:
    for partition, end in observation.ends.items():
        topic, _, number = partition.rpartition("-")
        yield (topic, number), end


def _verdicts(observation: Observation) -> Iterator[Sample]:
    for row in observation.verdicts:
        yield from (((row["query"], verdict), verdict == row["verdict"]) for verdict in VERDICTS)


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def _thousandth(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


GAUGES = (
    Gauge("streamgauge_query_state", "Whether the query is in this state: 1 for its state, 0 for the others", ("query", "state"), _states),
    Gauge(
        "streamgauge_query_report_timestamp_seconds",
        "When the query last reported, in seconds since 1970; it does so every 5 s",
        ("query",),
        _by_query(lambda status: _seconds(status.heard_at)),
    ),
    Gauge(
        "streamgauge_query_batch_timestamp_seconds",
        "When the last batch of the query ended, in seconds since 1970",
        ("query",),
        _by_query(lambda status: _seconds(status.batch_at)),
    ),
    Gauge(
        "streamgauge_query_lag_records",
        "Records in the source that the query has not read",
        ("query", "topic", "partition"),
        _lag,
    ),
    Gauge(
        "streamgauge_query_end_to_end_delay_seconds",
        "Age of the oldest record in the source that is not in the result yet, in seconds; 0 if there is none. At most one hour",
        ("query",),
        _delay,
    ),
    Gauge(
        "streamgauge_query_watermark_timestamp_seconds",
        "The watermark, in seconds since 1970; only of queries that have one",
        ("query",),
        _by_query(lambda status: _seconds(status.watermark)),
    ),
    Gauge(
        "streamgauge_query_watermark_delay_seconds",
        "How far the watermark is behind the clock, in seconds; negative if it is ahead",
        ("query",),
        _by_query(lambda status: _thousandth(status.watermark_age_ms)),
    ),
    Gauge(
        "streamgauge_query_state_rows",
        "Rows of state that the query keeps between batches",
        ("query",),
        _by_query(lambda status: status.state_rows),
    ),
    Gauge(
        "streamgauge_query_state_bytes",
        "Memory of the state that the query keeps between batches, in bytes",
        ("query",),
        _by_query(lambda status: status.state_bytes),
    ),
    Gauge(
        "streamgauge_topic_end_offset",
        "Offset of the next record of a source; its rate is that of the producers",
        ("topic", "partition"),
        _ends,
    ),
    Gauge(
        "streamgauge_table_verdict",
        "What verify or audit last found of the query's result: 1 for that verdict, 0 for the others",
        ("query", "verdict"),
        _verdicts,
    ),
    Gauge(
        "streamgauge_table_verdict_timestamp_seconds",
        "When that was found, in seconds since 1970",
        ("query",),
        lambda observation: [((row["query"],), row["time"].timestamp()) for row in observation.verdicts],
    ),
    Gauge(
        "streamgauge_table_equal_rows",
        "Rows that equalled what the source says",
        ("query",),
        lambda observation: [((row["query"],), row["rows"]["equal"]) for row in observation.verdicts],
    ),
)
