"""Weather: the average temperature per city and hour."""

import pandas as pd
import streamlit as st
from contract.domains.weather import CITY_STATS, DOMAIN

from contract.kafka.result_table import Row, decode_json
from dashboard.page_head import refreshing, snapshot_under


def decode(value: bytes) -> Row:
    """hour (start, UTC), city, readings, celsius of one record; raises KeyError for what is no such record."""
    row = decode_json(value)
    return {"hour": row["window"]["start"], "city": row["city"], "readings": row["readings"], "celsius": row["celsius_avg"]}


@refreshing
def page() -> None:
    """Draws the page."""
    snapshot = snapshot_under(DOMAIN.title, CITY_STATS.name, decode, "`streamgauge demo` starts the stations.")
    if snapshot is not None:
        rows = pd.DataFrame(list(snapshot.rows)).sort_values(["hour", "city"], ascending=[False, True])
        st.dataframe(rows, hide_index=True)
