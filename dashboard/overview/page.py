"""The Overview page: each domain at a glance, and its queries. It knows the domains by their declarations."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

import pandas as pd
import streamlit as st

from contract.domains import DOMAINS
from contract.domains.domain import Domain
from contract.kafka.cluster import KafkaCluster
from contract.query_status import FAILED, IDLE, RESTARTING, RUNNING, SILENT, STOPPED, QueryStatus, offsets_of
from contract.rows import Row
from contract.text import duration
from contract.topics import DEAD_LETTERS, QUERY_STATES, STREAMING_METRICS, VERDICTS
from dashboard import formats
from dashboard.health.history import HISTORY, RECENT, decode_point, history_of
from dashboard.overview.figures import (
    LETTERS,
    Throughput,
    Verified,
    counting,
    decode_letter,
    events_in,
    of_queries,
    rows_out,
    verified,
    waiting_since,
)
from dashboard.page_head import refreshing, snapshot_under
from dashboard.reading.polls import Poll, current_statuses, source_ends
from dashboard.reading.reader import follow, follow_recent
from dashboard.reading.states import show_unreadable

TOPIC, METRICS_TOPIC, LETTERS_TOPIC, VERDICTS_TOPIC = QUERY_STATES, STREAMING_METRICS.name, DEAD_LETTERS.name, VERDICTS
_WAITING = (
    "As soon as a query has been started, its domain appears here by itself. `streamgauge demo` starts everything, "
    "`streamgauge run` the queries."
)
_Colour = Literal["green", "gray", "orange", "red"]
_STATES: dict[str, tuple[_Colour, str]] = {
    RUNNING: ("green", "play_circle"),
    IDLE: ("gray", "hourglass_empty"),
    RESTARTING: ("orange", "restart_alt"),
    STOPPED: ("orange", "stop_circle"),
    FAILED: ("red", "error"),
    SILENT: ("red", "heart_broken"),
}
_VERIFIED: dict[str, tuple[str, _Colour, str]] = {
    "right": ("Verified", "green", "verified"),
    "not checked": ("Could not be verified", "orange", "unknown_med"),
    "wrong": ("Wrong", "red", "dangerous"),
}


def page(pages: Mapping[str, st.Page]) -> None:
    """Draws the page. pages: the page of each domain, by its name."""
    refreshing(lambda: _show(pages))()


def _show(pages: Mapping[str, st.Page]) -> None:
    snapshot = snapshot_under("Overview", TOPIC, _WAITING)
    if snapshot is None:
        return
    seen = _Seen(snapshot.kafka, snapshot.rows)
    for one in seen.snapshots:
        show_unreadable(one)
    broken = [status.query for status in seen.statuses if status.state in {FAILED, SILENT}]
    if broken:
        st.error(
            f"**{formats.several(len(broken), 'query does', 'queries do')} not run.** The Health page says why.", icon=":material/error:"
        )
    st.caption(
        f"Rates are means of the last minute. Late rows and dead letters are those of the last {duration(HISTORY)}. "
        "The end-to-end delay is the age of the oldest event in Kafka that is not in its table yet."
    )
    for domain in DOMAINS:
        with st.container(border=True, gap="small"):
            _show_domain(domain, seen, pages.get(domain.name))
    others = [status for status in seen.statuses if not any(domain.owns(status.query) for domain in DOMAINS)]
    if others:
        with st.container(border=True, gap="small"):
            st.header("Other queries", anchor=False)
            _show_queries(others)


class _Seen:
    """What the topics hold now."""

    def __init__(self, kafka: KafkaCluster, states: Sequence[Row]) -> None:
        self.now = datetime.now(UTC)
        self.statuses = current_statuses(kafka, states, self.now)
        self.polls = source_ends(kafka).polls
        self.offsets = {state["query"]: offsets_of(state) for state in states}
        events = follow_recent(kafka, METRICS_TOPIC, RECENT, decode_point).snapshot
        verdicts = follow(kafka, VERDICTS_TOPIC).snapshot
        letters = follow_recent(kafka, LETTERS_TOPIC, LETTERS, decode_letter).snapshot
        self.snapshots = (events, verdicts)
        self.history: pd.DataFrame = history_of(events)
        self.verdicts = verdicts.rows
        self.letters = Counter(row["topic"] for row in letters.rows if row["at"] > self.now - HISTORY)


def _show_domain(domain: Domain, seen: _Seen, its_page: st.Page | None) -> None:
    own = [status for status in seen.statuses if domain.owns(status.query)]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(domain.title, anchor=False, width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            _show_verified(verified(domain, seen.verdicts), len(own), seen.now)
            if its_page is not None:
                st.page_link(its_page, label="Open", icon=":material/arrow_forward:", icon_position="right")
    if not own:
        st.caption("None of its queries has run yet.")
        return
    queries = counting(domain, [status.query for status in own])
    offsets: dict[str, int] = {}
    for query in queries:
        offsets |= {name: min(offset, offsets.get(name, offset)) for name, offset in seen.offsets[query].items()}
    late = of_queries(seen.history, queries, seen.now)["late_rows"].sum()
    with st.container(horizontal=True):
        _show_throughput("Events in, per second", events_in(seen.polls, offsets, seen.now))
        _show_throughput("Rows out, per second", rows_out(seen.history, queries, seen.now))
        for label, value, width in (
            ("End-to-end delay", _delay(seen.polls, offsets, seen.now), 220),
            ("Late rows", formats.count(int(late)), 110),
            ("Dead letters", formats.count(sum(seen.letters[topic.name] for topic in domain.sources)), 110),
        ):
            st.metric(label, value, width=width)
    _show_queries(own)


def _show_throughput(label: str, found: Throughput | None) -> None:
    """A rate with its course. Two digits of it are enough."""
    rate = 0.0 if found is None else found.per_second
    value = "\N{EN DASH}" if found is None else f"{rate:,.0f}" if rate >= 10 or not rate else f"{rate:.1f}"  # noqa: PLR2004
    st.metric(label, value, width=280, chart_data=found.course if found else None, chart_type="bar")


def _delay(polls: Sequence[Poll], offsets: Mapping[str, int], now: datetime) -> str:
    since = waiting_since(offsets, polls)
    if since is None:
        return "0 s" if polls and offsets else "\N{EN DASH}"
    return f"{'over ' if since == polls[0][0] else ''}{duration(now - since)}"


def _show_verified(found: Verified | None, queries: int, now: datetime) -> None:
    if found is None:
        st.badge(
            "Not verified yet",
            icon=":material/help:",
            color="gray",
            help="`streamgauge audit` recounts every table from its source all the time, and `streamgauge verify` once.",
        )
        return
    label, colour, icon = _VERIFIED[found.verdict]
    some = "" if len(found.queries) >= queries else f", {len(found.queries)} of {queries} queries"
    lines = [f"{formats.several(found.rows, 'row equals', 'rows equal')} what the source says:", *map(formats.plain, found.queries)]
    st.badge(f"{label} {duration(now - found.at)} ago{some}", icon=f":material/{icon}:", color=colour, help="  \n".join(lines))


def _show_queries(found: Sequence[QueryStatus]) -> None:
    with st.container(horizontal=True, gap="xsmall"):
        for status in found:
            colour, icon = _STATES[status.state]
            st.badge(f"{formats.plain(status.query)} {status.state}", icon=f":material/{icon}:", color=colour)
