"""The Overview page: each domain at a glance, and its queries. It knows the domains by their declarations."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contract.domains import DOMAINS
from contract.domains.domain import Domain
from contract.query_status import FAILED, SILENT, QueryStatus, offsets_of, waiting_since
from contract.topics import DEAD_LETTERS, QUERY_STATES, STREAMING_METRICS
from dashboard import formats
from dashboard.charts import PICKED, Spec
from dashboard.glance import Glance, LookAt
from dashboard.health.history import HISTORY, RECENT, decode_point, history_of
from dashboard.origin import Origin
from dashboard.overview.figures import (
    LETTERS,
    Verified,
    counting,
    course_of_events,
    decode_letter,
    events_in,
    rows_out,
    too_late,
    verified,
)
from dashboard.overview.flow import Flow, drawing, table_of
from dashboard.page_head import refreshing, snapshot_under
from dashboard.reading.polls import Poll, current_statuses, source_ends
from dashboard.reading.reader import follow, follow_recent
from dashboard.reading.states import show_problem
from dashboard.verdicts import TOPIC as VERDICTS_TOPIC
from infrastructure.kafka.follower import Snapshot
from infrastructure.text import duration

TOPIC, METRICS_TOPIC, LETTERS_TOPIC = QUERY_STATES, STREAMING_METRICS.name, DEAD_LETTERS.name
FLOWING = Origin(QUERY_STATES, "", "QueryStates", "pipeline/monitoring/query_states.py")
_WAITING = (
    "A domain appears here once one of its queries has been started. `streamgauge demo` starts everything, `streamgauge run` the queries."
)
PICTURE_SECONDS = 30
"""How often a picture changes. To make one takes as long as to draw the rest of the page."""
_COLUMNS, _NOTHING, _EVENTS_IN = 3, "\N{EN DASH}", "Events in, per second"
_T = TypeVar("_T")
_Colour = Literal["green", "gray", "orange", "red"]
_VERIFIED: dict[str, tuple[str, _Colour, str]] = {
    "right": ("Verified", "green", "verified"),
    "not checked": ("Could not be verified", "orange", "unknown_med"),
    "wrong": ("Wrong", "red", "dangerous"),
}


def page(pages: Mapping[str, st.Page], glances: Mapping[str, LookAt]) -> None:
    """Draws the page. pages, glances: the page of each domain by its name, and what it shows here if it has that."""
    refreshing(lambda: _show(pages, glances))()


def _show(pages: Mapping[str, st.Page], glances: Mapping[str, LookAt]) -> None:
    snapshot = snapshot_under("Overview", TOPIC, _WAITING)
    if snapshot is None:
        return
    seen = _Seen(snapshot)
    for one in seen.snapshots:
        show_problem(one, snapshot)
    broken = [status.query for status in seen.statuses if status.state in {FAILED, SILENT}]
    if broken:
        st.error(
            f"**{formats.several(len(broken), 'query does', 'queries do')} not run.** The Health page says why.", icon=":material/error:"
        )
    for column, domain in _in_columns(DOMAINS):
        with column.container(border=True, height="stretch", gap="small"):
            _show_domain(domain, seen, pages.get(domain.name), glances.get(domain.name))
    st.caption(
        f"Rates are means of the last minute. Rows that came too late and dead letters are those of the last {duration(HISTORY)}. "
        "The end-to-end delay is the age of the oldest event in Kafka that is not in its table yet."
    )
    st.header("Pipeline", anchor=False, help=FLOWING.sentence)
    st.caption(
        "From each topic through the queries to their tables: rows per second, and the lag in records. "
        "The names of queries and tables are shown without that of their domain."
    )
    others = [status for status in seen.statuses if not any(domain.owns(status.query) for domain in DOMAINS)]
    drawn = [(domain, own) for domain in DOMAINS if (own := seen.queries_of(domain))]
    for column, (domain_or_none, own) in _in_columns([*drawn, *([(None, others)] if others else [])]):
        with column.container(border=True, height="stretch", gap="small"):
            _show_flow(domain_or_none, own, seen)


def _in_columns(items: Sequence[_T]) -> Iterator[tuple[DeltaGenerator, _T]]:
    for first in range(0, len(items), _COLUMNS):
        yield from zip(st.columns(_COLUMNS), items[first : first + _COLUMNS], strict=False)


class _Seen:
    """What the topics hold now."""

    def __init__(self, states: Snapshot) -> None:
        kafka, self.now = states.kafka, datetime.now(UTC)
        self.statuses = current_statuses(states, self.now)
        self.polls = source_ends(kafka).polls
        self.offsets = {state["query"]: offsets_of(state) for state in states.rows}
        events = follow_recent(kafka, METRICS_TOPIC, RECENT, decode_point).snapshot
        verdicts = follow(kafka, VERDICTS_TOPIC).snapshot
        letters = follow_recent(kafka, LETTERS_TOPIC, LETTERS, decode_letter).snapshot
        self.snapshots = (events, verdicts, letters)
        history = history_of(events)
        self.rows_out, self.too_late = rows_out(history, self.now), too_late(history, self.now)
        self.verdicts = verdicts.rows
        self.letters = Counter(row["topic"] for row in letters.rows if row["at"] > self.now - HISTORY)

    def queries_of(self, domain: Domain) -> list[QueryStatus]:
        return [status for status in self.statuses if domain.owns(status.query)]


def _show_domain(domain: Domain, seen: _Seen, its_page: st.Page | None, look: LookAt | None) -> None:
    own = seen.queries_of(domain)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(domain.title, anchor=False, width="content")
        if its_page is not None:
            st.page_link(its_page, label="Open", icon=":material/arrow_forward:", icon_position="right")
    if not own:
        st.caption("None of its queries has run yet.")
        return
    queries = counting(domain, [status.query for status in own])
    offsets: dict[str, int] = {}
    for query in queries:
        offsets |= {name: min(offset, offsets.get(name, offset)) for name, offset in seen.offsets[query].items()}
    per_second = events_in(seen.polls, offsets, seen.now)
    events = _NOTHING if per_second is None else formats.rate(per_second)
    glance = look() if look else None
    if glance is None:
        st.metric(_EVENTS_IN, events, chart_data=course_of_events(seen.polls, offsets), chart_type="area")
    else:
        st.metric(
            glance.label,
            glance.value,
            delta=glance.meaning,
            delta_color="primary",
            delta_arrow="off",
            chart_data=glance.course,
            chart_type="area",
            help=glance.origin.sentence,
        )
        _show_picture(glance, domain, its_page)
    with st.container(horizontal=True, gap="xsmall"):
        _show_verified(verified(domain, seen.verdicts), len(own), seen.now)
        st.badge(f"Delay {_delay(seen.polls, offsets, seen.now)}", icon=":material/timer:", color="gray", help="End-to-end")
    dropped, letters = (
        sum(seen.too_late.get(query, 0) for query in queries),
        sum(seen.letters[topic.name] for topic in domain.sources),
    )
    out = formats.rate(sum(seen.rows_out.get(query, 0) for query in queries))
    st.caption(
        f"{events} events in and {out} rows out per second. "
        f"{formats.several(dropped, 'row', 'rows')} too late, {formats.several(letters, 'dead letter', 'dead letters')}."
    )


def _show_picture(glance: Glance, domain: Domain, its_page: st.Page | None) -> None:
    """Draws the picture, on which a click opens the page."""
    clicked = st.vega_lite_chart(
        _picture(domain.name, glance.picture), width="stretch", alt=glance.alt, key=f"picture-{domain.name}", on_select="rerun"
    )
    if its_page is not None and clicked.selection.get(PICKED):
        st.switch_page(its_page)


@st.cache_resource(ttl=PICTURE_SECONDS, show_spinner=False)
def _picture(domain_name: str, _make: Callable[[], Spec]) -> Spec:  # noqa: ARG001 - by which it is kept
    return _make()


def _delay(polls: Sequence[Poll], offsets: Mapping[str, int], now: datetime) -> str:
    since = waiting_since(offsets, polls)
    if since is None:
        return "0 s" if polls and offsets else _NOTHING
    return f"{'over ' if since == polls[0][0] else ''}{duration(now - since)}"


def _show_flow(domain: Domain | None, own: Sequence[QueryStatus], seen: _Seen) -> None:
    title = domain.title if domain else "Other queries"
    st.markdown(f"**{title}**")
    flows = [
        Flow(
            topics=sorted({name.rpartition("-")[0] for name in seen.offsets[status.query]})
            or ([topic.name for topic in domain.sources] if domain else []),
            query=status.query,
            state=status.state,
            rows_in=status.input_rows_per_second,
            lag=status.lag,
            rows_out=None if status.is_trouble else seen.rows_out.get(status.query),
            table=table_of(status.query, domain),
        )
        for status in sorted(own, key=lambda status: status.query)
    ]
    alt = ", ".join(f"{flow.query} is {flow.state}" for flow in flows)
    prefix = f"{domain.name}-" if domain else ""
    st.graphviz_chart(drawing(flows, prefix=prefix, is_dark=st.context.theme.type == "dark"), alt=f"From topics to tables: {alt}")


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
    some = "" if len(found.verdicts) >= queries else f", {len(found.verdicts)} of {queries} queries"
    each = [formats.plain(query) + ("" if verdict == "right" else f": **{verdict}**") for query, verdict in found.verdicts.items()]
    lines = [f"{formats.several(found.rows, 'row equals', 'rows equal')} what the source says:", *each]
    st.badge(f"{label} {duration(now - found.at)} ago{some}", icon=f":material/{icon}:", color=colour, help="  \n".join(lines))
