"""What every domain page has: a head with its title, the freshness of its tables and any problem; figures; and boxes to draw in."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache, wraps
from threading import Lock

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from contract.topics import Topic
from dashboard import formats
from dashboard.origin import Origin
from dashboard.reading import states
from dashboard.reading.reader import follow
from dashboard.verdicts import show_verdict
from infrastructure.kafka.follower import Snapshot, followed, is_reading
from infrastructure.settings import Settings

REFRESH_SECONDS = 2
_ONE_AT_A_TIME = Lock()
"""Held while a page is drawn. Pages that are drawn at once gain nothing, and starve the thread that sends them to the browsers."""
_PAUSED, _STANDS_STILL = "paused", "stands still"
dashboard_settings = cache(Settings.from_environment)
"""The settings, as they were at the first call: with a password that has changed since then, each topic would be followed a second time."""


def refreshing(draw: Callable[[], None]) -> Callable[[], None]:
    """A page that is drawn again every REFRESH_SECONDS until the reader pauses it. The pause is part of the URL.

    Draw no `st.download_button` whose data is a function there: Streamlit refuses a click once it has drawn the button again.
    """

    @wraps(draw)
    def drawn() -> None:
        before = followed()
        with _ONE_AT_A_TIME:
            draw()
        # A topic that is followed since then may have been read after it was drawn.
        if followed() != before or _may_stand_still() != st.session_state[_STANDS_STILL]:
            st.rerun()

    @wraps(draw)
    def page() -> None:
        # The fragment keeps its interval for as long as the whole page is not drawn again, so the interval is kept here.
        st.session_state[_STANDS_STILL] = stands_still = _may_stand_still()
        st.fragment(drawn, run_every=None if stands_still else REFRESH_SECONDS)()

    return page


def _may_stand_still() -> bool:
    """Whether the page is paused and has something to show: a page that was opened paused first reads its tables."""
    return bool(st.session_state.get(_PAUSED, st.query_params.get(_PAUSED) == "true")) and not is_reading()


def is_standing_still() -> bool:
    return bool(st.session_state.get(_STANDS_STILL, False))


def _show_freshness(snapshot: Snapshot, now: datetime) -> None:
    if is_standing_still():
        st.badge(f"Paused at {formats.clock(now)}", icon=":material/pause:", color="gray")
    else:
        states.show_freshness(snapshot, now)
    st.toggle("Pause", key=_PAUSED, bind="query-params", help="Stop refreshing. A change of a filter still shows the newest data.")


def snapshot_under(title: str, topic: Topic, waiting: str) -> Snapshot | None:
    """Draws the head of a page about `topic`. Returns the current table, or None while there is nothing to draw below.

    waiting: what an empty topic waits for, and how to start it.
    """
    tables = snapshots_under(title, (topic,), waiting)
    return tables[0] if tables else None


def snapshots_under(title: str, topics: Iterable[Topic], waiting: str) -> tuple[Snapshot, ...]:
    """Draws the head of a page about several topics, the most important first.

    Returns the current tables, some of which may be empty; none while all are.
    """
    snapshots = tuple(follow(dashboard_settings().kafka, topic).snapshot for topic in topics)
    first, now = snapshots[0], datetime.now(UTC)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.title(title, anchor=False, width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            show_verdict(first.kafka, first.topic)
            _show_freshness(first, now)
    has_rows = any(snapshot.rows for snapshot in snapshots)
    states.show_state(first, now, waiting, has_page=not has_rows)
    for other in snapshots[1:]:
        # A problem that all tables share is shown once.
        if states.state_of(other, now) is not states.state_of(first, now) and has_rows:
            states.show_state(other, now, waiting, has_page=False)
        else:
            states.show_unreadable(other)
    return snapshots if has_rows else ()


def panel(column: DeltaGenerator, title: str, caption: str = "", *, origin: Origin, of: Snapshot | None = None) -> DeltaGenerator:
    """A box in `column` under a title, to draw in. Boxes side by side are equally high.

    origin: of its numbers, told beside the title. of: a table that only this box shows. The box shows the verdict on it, as the page's head does that
    of the first one.
    """
    box = column.container(border=True, height="stretch", gap="xsmall")
    with box.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.header(title, anchor=False, width="content", help=origin.sentence)
        if of is not None:
            show_verdict(of.kafka, of.topic)
    if caption:
        box.caption(caption)
    return box


def show_totals(totals: Iterable[tuple[str, str, str]]) -> None:
    """Draws figures side by side, on a phone two in a row. totals: label, number and meaning of each."""
    row = st.container(horizontal=True, gap="small")
    for label, number, meaning in totals:
        # Each in a container: these share a row evenly, two of them on a phone. Columns would be one below the other there.
        row.container().metric(label, number, delta=meaning, delta_color="off", delta_arrow="off", border=True)
