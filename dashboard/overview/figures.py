"""The figures of one domain on the Overview page. Pure functions of what the topics hold."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pandas as pd
from confluent_kafka import Message

from contract.domains.domain import Domain
from contract.kafka.recent_records import Recent
from contract.kafka.result_table import timestamp_ms_of
from contract.rows import Row
from dashboard.health.history import HISTORY
from dashboard.reading.polls import Poll

RATE_SECONDS = 60
SPARK_SECONDS = 30
LETTERS = Recent(records=20_000, within=HISTORY)
BEST_TO_WORST = ("right", "not checked", "wrong")


@dataclass(frozen=True)
class Throughput:
    """Events or rows per second: the mean of the last RATE_SECONDS, and of each SPARK_SECONDS of HISTORY, oldest first."""

    per_second: float
    course: Sequence[float]


@dataclass(frozen=True)
class Verified:
    """What the last verification of a domain's queries found.

    verdict: the worst one. queries: names. rows: rows that equal what the source says. at: the oldest of the verifications (UTC).
    """

    verdict: str
    queries: Sequence[str]
    rows: int
    at: datetime


def decode_letter(message: Message) -> Row:
    """topic, the source of a dead letter, and at (UTC). Its value is not looked at."""
    source = dict(message.headers() or []).get("topic")
    topic = source.decode(errors="replace") if isinstance(source, bytes) else ""
    return {"topic": topic, "at": datetime.fromtimestamp((timestamp_ms_of(message) or 0) / 1000, UTC)}


def counting(domain: Domain, queries: Iterable[str]) -> list[str]:
    """The queries of the domain that make its result tables; all of its queries if none does."""
    own = [query for query in queries if domain.owns(query)]
    return [query for query in own if query in domain.reports] or own


def events_in(polls: Sequence[Poll], partitions: Collection[str], now: datetime) -> Throughput | None:
    """The events that came to `partitions`, whether or not they were counted. None before the second poll."""
    ends_by_time = {at: sum(ends[name] for name in partitions) for at, ends in polls if partitions and ends.keys() >= set(partitions)}
    totals = pd.Series(ends_by_time, dtype="float64").loc[lambda found: found.index > now - HISTORY]
    recent = totals[totals.index > now - timedelta(seconds=RATE_SECONDS)]
    if len(recent) < 2:  # noqa: PLR2004 - a rate needs two
        return None
    seconds = (recent.index[-1] - recent.index[0]).total_seconds()
    # Without the last stretch, which is not over: its rate would look like a fall.
    course = totals.resample(f"{SPARK_SECONDS}s").last()[:-1].interpolate().diff().dropna() / SPARK_SECONDS
    return Throughput((recent.iloc[-1] - recent.iloc[0]) / seconds, course.tolist())


def rows_out(history: pd.DataFrame, queries: Collection[str], now: datetime) -> Throughput:
    """The rows that `queries` wrote. history: see `history_of`."""
    seen = of_queries(history, queries, now)
    end = pd.Timestamp(now).floor(f"{SPARK_SECONDS}s")
    times = pd.date_range(end - HISTORY, end, freq=f"{SPARK_SECONDS}s", inclusive="left")
    course = seen.groupby(seen["at"].dt.floor(f"{SPARK_SECONDS}s"))["sink_rows"].sum().reindex(times, fill_value=0) / SPARK_SECONDS
    recent = seen.loc[seen["at"] > now - timedelta(seconds=RATE_SECONDS), "sink_rows"]
    return Throughput(float(recent.sum()) / RATE_SECONDS, course.tolist())


def of_queries(history: pd.DataFrame, queries: Collection[str], now: datetime) -> pd.DataFrame:
    """The points of `queries` in HISTORY before `now`."""
    return history[history["query"].isin(queries) & (history["at"] > now - HISTORY)]


def verified(domain: Domain, verdicts: Iterable[Row]) -> Verified | None:
    """What is known of the domain's queries. None if none of them was verified."""
    own = [row for row in verdicts if domain.owns(row["query"])]
    if not own:
        return None
    return Verified(
        verdict=max((row["verdict"] for row in own), key=BEST_TO_WORST.index),
        queries=sorted(row["query"] for row in own),
        rows=sum(row["rows"]["equal"] for row in own),
        at=min(row["time"] for row in own),
    )


def waiting_since(offsets: Mapping[str, int], polls: Iterable[Poll]) -> datetime | None:
    """When a record at or beyond `offsets` was first seen in the source. None if there is none.

    offsets: by partition ("topic-0"), the next one to read.
    """
    return next((at for at, ends in polls if any(ends.get(name, 0) > offset for name, offset in offsets.items())), None)
