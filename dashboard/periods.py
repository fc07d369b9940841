"""The time that a page shows: the period of all its charts and tables, and the hour of its map. Both are part of the URL."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import formats
from dashboard.page_head import is_standing_still

RANGE, OLDEST, NEWEST, ALL = "range", "oldest", "newest", "all"
_PERIOD, _HOUR, _PLAY = "period", "hour", "play"
MAX_STRAYS = 0.1
"""The largest share of the windows that can be strays."""


@dataclass(frozen=True)
class Period:
    """From start to end, UTC."""

    start: pd.Timestamp
    end: pd.Timestamp

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows whose windows lie in the period."""
        return frame[(frame["start"] >= self.start) & (frame["end"] <= self.end)]


def choose_period(column: DeltaGenerator, windows: pd.DataFrame, choices: Mapping[str, timedelta | None], default: str) -> Period:
    """Draws the choices into `column`, and below them a slider if RANGE is chosen.

    windows: start, end. choices: how far back from the end of the newest window each one reaches, but not less far than that window; None: as
    far as there is one. It leaves out strays, and says how many. Such a period moves on with the newest window; a range stays where it is, unless one of its ends is OLDEST or NEWEST.
    """
    chosen = column.segmented_control("Period", [*choices, RANGE], default=default, required=True, key=_PERIOD, bind="query-params")
    first, last = windows["start"].min(), windows["end"].max()
    if chosen != RANGE:
        length = choices[chosen or default]
        if length is not None:
            return Period(min(last - length, windows.loc[windows["end"] == last, "start"].max()), last)
        starts = windows["start"].drop_duplicates().sort_values(ignore_index=True)
        strays = strays_of(starts)
        if strays:
            left_out = formats.several(strays, "older window is", "older windows are")
            column.caption(f"{left_out} left out, far before {formats.day(starts[strays])}. Choose *{RANGE}* to see all.")
        return Period(starts[strays], last)
    moments = pd.concat([windows["start"], windows["end"]]).dt.floor("s").drop_duplicates().sort_values()
    start, end = _choose_range([OLDEST, *map(_label, moments), NEWEST])
    return Period(first if start == OLDEST else _moment(start), last if end == NEWEST else _moment(end))


def strays_of(starts: pd.Series) -> int:
    """How many of the first windows are strays: few, and before a gap longer than all that comes after it. Charts would show little else.

    starts: of the windows, different and in order.
    """
    gaps = starts.diff()[1:]
    if gaps.empty:
        return 0
    strays = int(gaps.argmax()) + 1
    is_mostly_gap = gaps.max() > starts.iloc[-1] - starts.iloc[strays]
    return strays if is_mostly_gap and strays <= MAX_STRAYS * len(starts) else 0


def _choose_range(ends: list[str]) -> tuple[str, str]:
    """Draws a slider over `ends`. Streamlit would not put into the URL what a click on a chart has set before the slider was there."""
    held = tuple(st.session_state.get(RANGE, st.query_params.get_all(RANGE)))
    if set(held) <= set(ends) and len(held) == 2:  # noqa: PLR2004 - both ends
        st.session_state[RANGE] = held
    else:
        st.session_state.pop(RANGE, None)
    chosen = st.select_slider("From, to", ends, value=(OLDEST, NEWEST), key=RANGE)
    if st.query_params.get_all(RANGE) != [*chosen]:
        st.query_params[RANGE] = chosen
    return chosen


def go_to(window: Mapping[str, float]) -> None:
    """Makes a window the period, after a click on it. window: start, end in milliseconds since 1970."""
    st.session_state[_PERIOD] = RANGE
    st.session_state[RANGE] = tuple(_label(pd.Timestamp(window[end], unit="ms")) for end in ("start", "end"))


def choose_hour(starts: pd.Series, noun: str = "hour") -> pd.Timestamp | None:
    """Draws a slider over the windows that start at `starts`, and a switch that plays them. Returns the start of the chosen one, None for all.

    While it plays, each refresh of the page shows the next window. A paused page stands still. noun: what the page calls a window.
    """
    hours = [ALL, *map(_label, starts.drop_duplicates().sort_values())]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if st.toggle("Play", key=_PLAY, bind="query-params", help=f"Shows {noun} after {noun}.") and not is_standing_still():
            place = hours.index(st.session_state[_HOUR]) if st.session_state.get(_HOUR) in hours else 0
            st.session_state[_HOUR] = hours[place % (len(hours) - 1) + 1]
        hour = st.select_slider(noun.capitalize(), hours, key=_HOUR, bind="query-params")
    return None if hour == ALL else _moment(hour)


def _label(moment: pd.Timestamp) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment.second else f"{moment:%Y-%m-%d %H:%M}"


def _moment(label: str) -> pd.Timestamp:
    return pd.Timestamp(label, tz="UTC")
