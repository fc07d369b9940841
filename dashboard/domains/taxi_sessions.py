"""The part of the taxi page on sessions: the newest of each zone, while they go on. They are there once `taxi-zone-sessions-early` has run."""

from collections.abc import Collection

import streamlit as st

from contract.domains.taxi import TAXI_ZONE_SESSIONS_EARLY
from contract.kafka.cluster import KafkaCluster
from contract.kafka.result_table import Row, decode_json
from dashboard.domains.taxi_boroughs import known
from dashboard.page_head import panel
from dashboard.reading.reader import follow
from dashboard.windows import frame_of, window_of

TOPIC = TAXI_ZONE_SESSIONS_EARLY.name
ROWS_LISTED = 200
COLUMNS = ("zone", "borough", "start", "end", "trips", "fares")


def decode(value: bytes) -> Row:
    """COLUMNS of one record, times as datetime. Raises KeyError, TypeError or ValueError for any other record."""
    row = decode_json(value)
    names = {"zone": row["zone"], "borough": known(row["borough"])}
    return {**names, **window_of(row), "trips": row["trips"], "fares": float(row["fare_amount_sum"] or 0)}


def show_sessions(kafka: KafkaCluster, boroughs: Collection[str], zone: str) -> None:
    """Draws the newest sessions, once there is one in `boroughs`; none are all. zone: the time zone of the windows."""
    rows = [row for row in follow(kafka, TOPIC, decode).snapshot.rows if not boroughs or row["borough"] in boroughs]
    if not rows:
        return
    sessions = frame_of(rows, COLUMNS).sort_values(["end", "zone"], ascending=False).head(ROWS_LISTED)
    with panel(
        st.container(), "Sessions", f"Trips that each follow another of the zone within five minutes, the newest sessions first, {zone}."
    ):
        st.dataframe(
            sessions,
            hide_index=True,
            height=260,
            column_config={
                "zone": "Zone",
                "borough": "Borough",
                "start": st.column_config.DatetimeColumn("First trip", format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
                "end": st.column_config.DatetimeColumn("Open until", format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
                "trips": "Trips",
                "fares": st.column_config.NumberColumn("Fares", format="$%.2f"),
            },
        )
