"""Weather: the average temperature per city and hour."""

import streamlit as st
from contract.domains.weather import CITY_STATS, DOMAIN

from dashboard.page_head import refreshing, snapshot_under
from dashboard.windows import frame_of


@refreshing
def page() -> None:
    """Draws the page."""
    snapshot = snapshot_under(DOMAIN.title, CITY_STATS, "`streamgauge demo` starts the stations.")
    if snapshot is not None:
        rows = frame_of(snapshot.rows, ("start", "end", "city", "readings", "celsius_avg"))
        st.dataframe(rows.sort_values(["start", "city"], ascending=[False, True]), hide_index=True)
