"""The figures of one domain on the Overview page. Pure functions of what the topics hold."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pandas as pd
from confluent_kafka import Message

from contract.domains.domain import Domain
from dashboard.health.history import HISTORY
from dashboard.reading.polls import Poll
from infrastructure.kafka.recent_records import Recent
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.result_table import timestamp_ms_of
from infrastructure.rows import Row

RATE_SECONDS = 60
SPARK_SECONDS = 30
LETTERS = Recent(records=20_000, within=HISTORY)
BEST_TO_WORST = ("right", "not checked", "wrong")


@dataclass(frozen=True)
class Verified:
    """What the last verification of a domain's queries found.

    verdict: the worst one. verdicts: of each query. rows: rows that equal what the source says. at: the oldest of the verifications (UTC).
    """

    verdict: str
    verdicts: Mapping[str, str]
    rows: int
    at: datetime


def decode_letter(message: Message) -> Row:
    """topic, the source of a dead letter, and at (UTC). Its value is not looked at."""
    source = dict(headers_of(message)).get("topic")
    topic = source.decode(errors="replace") if isinstance(source, bytes) else ""
    return {"topic": topic, "at": datetime.fromtimestamp((timestamp_ms_of(message) or 0) / 1000, UTC)}


def counting(domain: Domain, queries: Iterable[str]) -> list[str]:
    """The queries of the domain whose tables count; all of its queries if none does."""
    own, that_count = [query for query in queries if domain.owns(query)], {topic.query for topic in domain.results if topic.counted}
    return [query for query in own if query in that_count] or own


def events_in(polls: Sequence[Poll], partitions: Collection[str], now: datetime) -> float | None:
    """The events per second that came to `partitions` in the last RATE_SECONDS, whether or not they were counted. None before the second poll."""
    recent = [(at, total) for at, total in _totals(polls, partitions) if at > now - timedelta(seconds=RATE_SECONDS)]
    if len(recent) < 2:  # noqa: PLR2004 - a rate needs two
        return None
    (first, before), (last, total) = recent[0], recent[-1]
    return max(total - before, 0) / (last - first).total_seconds()  # of a topic that was made anew, the ends are lower


def course_of_events(polls: Sequence[Poll], partitions: Collection[str]) -> list[float]:
    """The events per second in each SPARK_SECONDS, oldest first. Without the last, which is not over: its rate would look like a fall."""
    totals = pd.Series(dict(_totals(polls, partitions)), dtype="float64")
    if totals.empty:
        return []
    rates: list[float] = (
        totals.resample(f"{SPARK_SECONDS}s").last()[:-1].interpolate().diff().dropna().clip(lower=0) / SPARK_SECONDS
    ).tolist()
    return rates


def _totals(polls: Sequence[Poll], partitions: Collection[str]) -> list[tuple[datetime, int]]:
    known = set(partitions)
    return [(at, sum(ends[name] for name in known)) for at, ends in polls if known and ends.keys() >= known]


def rows_out(history: pd.DataFrame, now: datetime) -> Mapping[str, float]:
    """The rows per second that each query wrote in the last RATE_SECONDS. history: see `history_of`."""
    recent = history[history["at"] > now - timedelta(seconds=RATE_SECONDS)]
    return {str(query): rows / RATE_SECONDS for query, rows in recent.groupby("query")["sink_rows"].sum().items()}


def too_late(history: pd.DataFrame, now: datetime) -> Mapping[str, int]:
    """The rows that came too late for each query, in HISTORY before `now`."""
    sums = history[history["at"] > now - HISTORY].groupby("query")["too_late"].sum()
    return {str(query): int(rows) for query, rows in sums.items()}


def verified(domain: Domain, verdicts: Iterable[Row]) -> Verified | None:
    """What is known of the domain's queries. None if none of them was verified."""
    own = [row for row in verdicts if domain.owns(row["query"])]
    if not own:
        return None
    return Verified(
        verdict=max((row["verdict"] for row in own), key=BEST_TO_WORST.index),
        verdicts={row["query"]: row["verdict"] for row in sorted(own, key=itemgetter("query"))},
        rows=sum(row["rows"]["equal"] for row in own),
        at=min(row["time"] for row in own),
    )
