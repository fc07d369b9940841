"""Bikes: trips per station and hour."""

import streamlit as st
from contract.domains.bike import DOMAIN, STATION_STATS

from dashboard.page_head import refreshing, snapshot_under
from dashboard.windows import frame_of


@refreshing
def page() -> None:
    """Draws the page."""
    snapshot = snapshot_under(DOMAIN.title, STATION_STATS, "`streamgauge workshop run 12` starts the bikes.")
    if snapshot is not None:
        rows = frame_of(snapshot.rows, ("start", "end", "station", "trips", "minutes"))
        st.dataframe(rows.sort_values(["start", "station"], ascending=[False, True]), hide_index=True)
