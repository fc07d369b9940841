"""The stream's status on the Wikimedia page: live, simulated or recorded, and the pipeline's lag."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import streamlit as st
from confluent_kafka import Message

from contract.domains.wikimedia import WIKIMEDIA
from contract.kafka.result_table import decode_json
from contract.settings import Settings
from contract.text import duration
from contract.topics import STREAMING_METRICS
from dashboard import formats
from dashboard.reading.states import STALE_AFTER
from dashboard.reading.tails import tail

SOURCE_TOPIC, METRICS_TOPIC = WIKIMEDIA.name, STREAMING_METRICS.name
QUERY = "wikimedia-edit-stats"
METRICS_RECORDS = 300
"""The number of newest metrics records to read. A dozen queries write one per second each."""
ONE_SOURCE = timedelta(seconds=60)
"""A partition whose last record is this much older than the newest one does not show the current source."""
_Colour = Literal["green", "blue", "violet", "gray"]
_SOURCES: dict[str, tuple[str, str, _Colour]] = {
    "live": ("Source: Wikimedia, live", "sensors", "green"),
    "recorded": ("Source: a recording", "history", "blue"),
    "simulated": ("Source: simulated", "science", "violet"),
}
_NO_SOURCE: tuple[str, str, _Colour] = ("Source: unknown", "help", "gray")
_LAG = "Records not yet read"
_NOTHING = "\N{EN DASH}"


@dataclass(frozen=True)
class Report:
    """A query's report: event (progress, idle, terminated), time (UTC), lag in records, and duration of its batch."""

    event: str
    at: datetime
    waiting: int = 0
    batch_ms: int = 0


def sources_of(records: Iterable[Message]) -> list[str]:
    """The distinct values of the header `source`; "" for a record without it. Ignores records older than the newest by ONE_SOURCE."""
    moments = [(_moment(record), _header(record, "source")) for record in records]
    newest = max((moment for moment, _ in moments), default=datetime.now(UTC))
    return sorted({source for moment, source in moments if newest - moment <= ONE_SOURCE})


def show_source(settings: Settings, now: datetime) -> None:
    """Draws badges: the source of the records, and the age of the last one."""
    records = tail(settings.kafka, SOURCE_TOPIC, 1).records
    if not records:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, icon, colour in dict.fromkeys(_SOURCES.get(source, _NO_SOURCE) for source in sources_of(records)):
            st.badge(label, icon=f":material/{icon}:", color=colour)
        st.caption(f"last event {duration(now - max(map(_moment, records)))} ago", width="content")


def lag(settings: Settings, now: datetime) -> tuple[str, str, str]:
    """Label, number and meaning of the query's lag in records, as of its last report."""
    return lag_of(newest_report(tail(settings.kafka, METRICS_TOPIC, METRICS_RECORDS).records), now)


def lag_of(last: Report | None, now: datetime) -> tuple[str, str, str]:
    """As `lag`, from the query's last report."""
    if last is None:
        return _LAG, _NOTHING, "the pipeline says nothing of itself"
    since = now - last.at
    if last.event == "terminated":
        return _LAG, _NOTHING, f"{QUERY} ended {duration(since)} ago"
    if since > STALE_AFTER:
        return _LAG, _NOTHING, f"{QUERY} has been silent for {duration(since)}"
    what = "waits for records" if last.event == "idle" else f"last batch {formats.count(last.batch_ms)} ms"
    return _LAG, formats.count(last.waiting), f"{what}, {duration(since)} ago"


def newest_report(records: Iterable[Message]) -> Report | None:
    """The newest record of topic streaming-metrics in which QUERY reports its state. None when there is none."""
    reports = (_report(record.value() or b"") for record in reversed(list(records)) if record.key() == QUERY.encode())
    return next(filter(None, reports), None)


def _report(value: bytes) -> Report | None:
    try:
        row = decode_json(value)
        report = Report(row["event"], datetime.fromisoformat(row["time"]))
        if report.at.tzinfo is None:
            return None
        if report.event == "progress":
            return replace(report, waiting=sum(row["source_lag"].values()), batch_ms=int(row["batch_ms"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return report if report.event in {"idle", "terminated"} else None


def _moment(record: Message) -> datetime:
    return datetime.fromtimestamp(record.timestamp()[1] / 1000, UTC)


def _header(record: Message, name: str) -> str:
    value = dict(record.headers() or []).get(name)
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
