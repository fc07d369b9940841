"""What the Wikimedia page says of the stream itself: whether it is live, simulated or recorded, and how far the pipeline is behind it."""

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
"""How many of the newest records about queries are looked at: a dozen queries write one a second each."""
ONE_SOURCE = timedelta(seconds=60)
"""A partition whose last record is that much older than the newest says nothing of where records come from now."""
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
    """What a query said of itself: event (progress, idle, terminated), when (UTC), the records it had still to read, how long its batch took."""

    event: str
    at: datetime
    waiting: int = 0
    batch_ms: int = 0


def sources_of(records: Iterable[Message]) -> list[str]:
    """What the header `source` of records says, each word once; "" for a record without it. Of records about as new as the newest only."""
    moments = [(_moment(record), _header(record, "source")) for record in records]
    newest = max((moment for moment, _ in moments), default=datetime.now(UTC))
    return sorted({source for moment, source in moments if newest - moment <= ONE_SOURCE})


def show_source(settings: Settings, now: datetime) -> None:
    """Badges: where the records of the source topic come from, and how long ago the last one was written."""
    records = tail(settings.kafka, SOURCE_TOPIC, 1).records
    if not records:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, icon, colour in dict.fromkeys(_SOURCES.get(source, _NO_SOURCE) for source in sources_of(records)):
            st.badge(label, icon=f":material/{icon}:", color=colour)
        st.caption(f"last event {duration(now - max(map(_moment, records)))} ago", width="content")


def lag(settings: Settings, now: datetime) -> tuple[str, str, str]:
    """Label, number and meaning: the records that the query had still to read when it last said something of itself."""
    return lag_of(newest_report(tail(settings.kafka, METRICS_TOPIC, METRICS_RECORDS).records), now)


def lag_of(last: Report | None, now: datetime) -> tuple[str, str, str]:
    """As `lag`, from what the query said last."""
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
    """The newest record of topic streaming-metrics in which QUERY says how it runs; None when there is none."""
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
