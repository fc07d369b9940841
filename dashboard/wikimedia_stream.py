"""What the Wikimedia page says of the stream itself: whether it is live, simulated or recorded, and how far the pipeline is behind it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal

import orjson
import streamlit as st
from confluent_kafka import Message

from dashboard import formats
from dashboard.states import STALE_AFTER
from dashboard.tails import tail
from streamgauge.result_table import Row
from streamgauge.settings import Settings
from streamgauge.topics import STREAMING_METRICS, WIKIMEDIA

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


def sources_of(records: Iterable[Message]) -> list[str]:
    """What the header `source` of records says, each word once; "" for a record without it. Of records about as new as the newest only."""
    moments = [(_moment(record), _header(record, "source")) for record in records]
    newest = max((moment for moment, _ in moments), default=datetime.now(UTC))
    return sorted({source for moment, source in moments if newest - moment <= ONE_SOURCE})


def show_source(settings: Settings, now: datetime) -> None:
    """Badges: where the records of the source topic come from, and how long ago the last one was written."""
    records = tail(settings.bootstrap_servers, SOURCE_TOPIC, 1).records
    if not records:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        for source in sources_of(records):
            label, icon, colour = _SOURCES.get(source, _NO_SOURCE)
            st.badge(label, icon=f":material/{icon}:", color=colour)
        st.caption(f"last event {formats.duration(now - max(map(_moment, records)))} ago", width="content")


def lag(settings: Settings, now: datetime) -> tuple[str, str, str]:
    """Label, number and meaning: the records that the query had still to read when it last said something of itself."""
    records = tail(settings.bootstrap_servers, METRICS_TOPIC, METRICS_RECORDS).records
    last = newest_report(records)
    if last is None:
        return _LAG, _NOTHING, "the pipeline says nothing of itself"
    since = now - datetime.fromisoformat(last["time"])
    match last["event"]:
        case "terminated":
            return _LAG, _NOTHING, f"{QUERY} ended {formats.duration(since)} ago"
        case _ if since > STALE_AFTER:
            return _LAG, _NOTHING, f"{QUERY} has been silent for {formats.duration(since)}"
        case "idle":
            return _LAG, "0", f"waits for records, {formats.duration(since)} ago"
        case _:
            waiting = sum(last["source_lag"].values())
            return _LAG, formats.count(waiting), f"last batch {formats.count(last['batch_ms'])} ms, {formats.duration(since)} ago"


def newest_report(records: Iterable[Message]) -> Row | None:
    """The newest record of topic streaming-metrics about QUERY that says how it runs; None when there is none."""
    for record in reversed(list(records)):
        if record.key() == QUERY.encode():
            report: Row = orjson.loads(record.value() or b"{}")
            if report.get("event") in {"progress", "idle", "terminated"}:
                return report
    return None


def _moment(record: Message) -> datetime:
    return datetime.fromtimestamp(record.timestamp()[1] / 1000, UTC)


def _header(record: Message, name: str) -> str:
    value = dict(record.headers() or []).get(name)
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
