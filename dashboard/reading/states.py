"""The states that all pages share: connecting, unreachable, empty, stale, live. A problem is shown once, with what to do."""

from datetime import datetime, timedelta
from enum import Enum

import pandas as pd
import streamlit as st

from dashboard import formats
from infrastructure.kafka.follower import Snapshot
from infrastructure.text import duration

STALE_AFTER = timedelta(seconds=60)
"""A page is stale when no record has arrived for this long. A running pipeline writes every few seconds."""


class State(Enum):
    """The state of a result topic."""

    CONNECTING = "connecting"
    UNREACHABLE = "unreachable"
    EMPTY = "empty"
    STALE = "stale"
    LIVE = "live"


def state_of(snapshot: Snapshot, now: datetime) -> State:
    """The state of a result topic at `now` (UTC)."""
    if snapshot.error is not None:
        return State.UNREACHABLE
    if not snapshot.is_read:
        return State.CONNECTING
    if not snapshot.rows:
        return State.EMPTY
    if snapshot.newest_record_at is None or now - snapshot.newest_record_at > STALE_AFTER:
        return State.STALE
    return State.LIVE


def show_freshness(snapshot: Snapshot, now: datetime) -> None:
    """Draws a badge with the state and the age of the newest result."""
    last = "" if snapshot.newest_record_at is None else f"last update {duration(now - snapshot.newest_record_at)} ago"
    match state_of(snapshot, now):
        case State.CONNECTING:
            st.badge("Connecting", icon=":material/sync:", color="gray")
        case State.UNREACHABLE:
            st.badge("No connection", icon=":material/cloud_off:", color="red")
        case State.EMPTY:
            st.badge("Waiting for events", icon=":material/hourglass_empty:", color="gray")
        case State.STALE:
            st.badge(f"Stale · {last}", icon=":material/schedule:", color="orange")
        case State.LIVE:
            st.badge(f"Live · {last}", icon=":material/sensors:", color="green")


def show_state(snapshot: Snapshot, now: datetime, what_starts_it: str, *, has_page: bool = True) -> None:
    """Draws a message unless the state is normal.

    what_starts_it: what an empty topic waits for, and how to start it. has_page: whether an empty table has the page to itself; otherwise
    its message is one line above the other tables.
    """
    state = state_of(snapshot, now)
    if state is State.CONNECTING:
        text = f"Reading topic {snapshot.topic} from Kafka at {snapshot.kafka}."
        _without_rows("sync", "Connecting", text, has_page=has_page)
    elif state is State.EMPTY:
        text = what_starts_it if has_page else f"Topic {snapshot.topic} is empty."
        _without_rows("hourglass_empty", "No events yet", text, has_page=has_page)
    elif state is State.UNREACHABLE and (snapshot.rows or not has_page):
        what_is_shown = "What is shown is from before." if snapshot.rows else f"What topic {snapshot.topic} has is missing here."
        st.error(f"**No connection.** {_failure(snapshot, now)} {what_is_shown}", icon=":material/cloud_off:")
    elif state is State.UNREACHABLE:
        _fill_page("cloud_off", "No connection", _failure(snapshot, now))
    elif state is State.STALE and snapshot.newest_record_at is not None:
        st.warning(
            f"**Nothing new for {duration(now - snapshot.newest_record_at)}.** The last result came at "
            f"{formats.clock(snapshot.newest_record_at)}; what is shown was right then. "
            "If events should be arriving, the Overview page says whether they do, and whether the queries run.",
            icon=":material/schedule:",
        )
    show_unreadable(snapshot)


def _without_rows(icon: str, title: str, text: str, *, has_page: bool) -> None:
    if has_page:
        _fill_page(icon, title, text)
    else:
        st.info(f"**{title}.** {text}", icon=f":material/{icon}:")


def _failure(snapshot: Snapshot, now: datetime) -> str:
    since = "" if snapshot.failing_since is None else f" Failing for {duration(now - snapshot.failing_since)}."
    error = formats.plain(str(snapshot.error))
    return f"{error[:1].upper()}{error[1:]}.{since} The page recovers automatically once it can be read."


def _fill_page(icon: str, title: str, text: str) -> None:
    with st.container(border=True, height=380, horizontal_alignment="center", vertical_alignment="center"):
        st.title(f":material/{icon}:", anchor=False, width="content")
        st.header(title, anchor=False, width="content")
        st.markdown(text, width=620, text_alignment="center")


def show_unreadable(snapshot: Snapshot) -> None:
    """Draws an expandable list of the rows that cannot be read. Draws nothing if there are none."""
    if not snapshot.unreadable:
        return
    values = formats.several(len(snapshot.unreadable), "value", "values")
    with st.expander(f":orange[**Not counted here:** {values} of topic {snapshot.topic} that cannot be read]", icon=":material/report:"):
        keys = [key.decode(errors="replace") if key is not None else "" for key in snapshot.unreadable]
        st.dataframe(pd.DataFrame({"key": keys, "reason": list(snapshot.unreadable.values())}), hide_index=True)


def show_problem(snapshot: Snapshot, of_page: Snapshot | None = None) -> None:
    """Draws why one part of a page is not current or not complete, if it is not. of_page: what the page's head is about, which tells its own error."""
    if snapshot.error is not None and (of_page is None or of_page.error is None):
        st.caption(f":red[Not current:] {formats.plain(snapshot.error)}")
    show_unreadable(snapshot)
