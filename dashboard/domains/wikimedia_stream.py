"""The stream's status on the Wikimedia page: live, simulated or recorded, and the pipeline's lag."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Literal

import streamlit as st
from confluent_kafka import Message

from contract.domains.wikimedia import WIKIMEDIA
from contract.query_status import IDLE, QueryStatus
from contract.topics import QUERY_STATES
from dashboard import formats
from dashboard.reading.polls import current_statuses, tail
from dashboard.reading.reader import follow
from infrastructure.kafka.record_headers import headers_of
from infrastructure.kafka.result_table import timestamp_ms_of
from infrastructure.settings import Settings
from infrastructure.text import duration

SOURCE_TOPIC, STATES_TOPIC = WIKIMEDIA.name, QUERY_STATES
QUERY = "wikimedia-edit-stats"
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


def sources_of(records: Iterable[Message]) -> list[str]:
    """The distinct values of the header `source`; "" for a record without it. Ignores records older than the newest by ONE_SOURCE."""
    moments = [(_moment(record), _header(record, "source")) for record in records]
    newest = max((moment for moment, _ in moments), default=datetime.now(UTC))
    return sorted({source for moment, source in moments if newest - moment <= ONE_SOURCE})


def show_source(settings: Settings, now: datetime) -> None:
    """Draws badges: the source of the records, and the age of the last one."""
    records = tail(settings.kafka, SOURCE_TOPIC).answer
    if not records:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, icon, colour in dict.fromkeys(_SOURCES.get(source, _NO_SOURCE) for source in sources_of(records)):
            st.badge(label, icon=f":material/{icon}:", color=colour)
        st.caption(f"last event {duration(now - max(map(_moment, records)))} ago", width="content")


def lag(settings: Settings, now: datetime) -> tuple[str, str, str]:
    """Label, number and meaning of the query's lag in records."""
    found = current_statuses(follow(settings.kafka, STATES_TOPIC).snapshot, now)
    return lag_of(next((status for status in found if status.query == QUERY), None), now)


def lag_of(status: QueryStatus | None, now: datetime) -> tuple[str, str, str]:
    """As `lag`, from the query's status."""
    if status is None or status.is_trouble or status.lag is None:
        return _LAG, _NOTHING, f"the query {'has not run' if status is None else f'is {status.state}'}"
    if status.state == IDLE or status.batch_at is None:
        return _LAG, formats.count(status.lag), "waits for records" if status.state == IDLE else "in its first batch"
    last = "last checkpoint" if status.batch_ms is None else "last batch"
    return _LAG, formats.count(status.lag), f"{last} {duration(now - status.batch_at)} ago"


def _moment(record: Message) -> datetime:
    return datetime.fromtimestamp((timestamp_ms_of(record) or 0) / 1000, UTC)


def _header(record: Message, name: str) -> str:
    value = dict(headers_of(record)).get(name)
    return value.decode(errors="replace") if isinstance(value, bytes) else ""
