"""Charts whose marks can be clicked: a click sets a filter of the page. Who has no pointer sets the same filter by hand."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from dashboard.charts import OTHERS, PICKED, Spec

_CLICKS = "clicks"


def show_clickable(spec: Spec, *, key: str, alt: str, on_click: Callable[[dict[str, Any]], None]) -> None:
    """Draws the chart. on_click: called with the fields of the mark that was clicked."""
    # Under a new key after each click, the charts forget it: the same mark can be clicked again.
    clicks = st.session_state.get(_CLICKS, 0)
    its_key = f"{key}-{clicks}"

    def clicked() -> None:
        for mark in st.session_state[its_key].selection[PICKED]:
            on_click(mark)
            st.session_state[_CLICKS] = clicks + 1

    st.vega_lite_chart(spec=spec, width="stretch", alt=alt, key=its_key, on_select=clicked)


def only(filter_key: str, field: str) -> Callable[[dict[str, Any]], None]:
    """Sets the filter to what was clicked; a second click on it lifts the filter. field: of the mark."""

    def on_click(mark: dict[str, Any]) -> None:
        name = mark[field]
        if name != OTHERS:
            st.session_state[filter_key] = [] if st.session_state.get(filter_key) == [name] else [name]

    return on_click
