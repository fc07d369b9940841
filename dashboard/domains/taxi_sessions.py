"""The part of the taxi page on sessions of zones, while they go on. They are there once `taxi-zone-sessions-early` has run."""

from datetime import timedelta

import pandas as pd
import streamlit as st

from contract.domains.taxi import TAXI_ZONE_SESSIONS_EARLY
from dashboard import charts, formats, maps
from dashboard.drill_down import only, show_clickable
from dashboard.origin import Origin
from dashboard.page_head import panel
from dashboard.periods import Period
from dashboard.reading.reader import follow
from dashboard.reading.states import show_problem
from dashboard.windows import frame_of, of_hour
from infrastructure.kafka.follower import Snapshot, per_snapshot

TOPIC = TAXI_ZONE_SESSIONS_EARLY
ROWS_LISTED = 200
IN_SESSIONS = Origin(TOPIC, "taxi-zone-sessions-early", "zone_sessions_early", "pipeline/domains/taxi.py")
COLUMNS = ("zone_id", "zone", "borough", "start", "end", "trips", "fare_amount_sum")
UNKNOWN, NOT_APPLICABLE = "Unknown", "N/A"
"""TLC has a zone for "unknown" and one for "N/A". To a reader both are unknown."""


def with_known_boroughs(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with UNKNOWN for NOT_APPLICABLE."""
    boroughs = [name for name in frame.columns if "borough" in name]
    return frame.assign(**frame[boroughs].replace(NOT_APPLICABLE, UNKNOWN))


@per_snapshot
def chosen_of(snapshot: Snapshot, period: Period, boroughs: tuple[str, ...]) -> pd.DataFrame:
    """The sessions that began in the period in these boroughs, the newest first; none are all."""
    sessions = with_known_boroughs(frame_of(snapshot.rows, COLUMNS))
    sessions = sessions.assign(fare_amount_sum=sessions["fare_amount_sum"].astype(float).fillna(0.0))
    began = (sessions["start"] >= period.start) & (sessions["start"] < period.end)
    return sessions[began & sessions["borough"].isin(boroughs or sessions["borough"])].sort_values(["end", "zone"], ascending=False)


@per_snapshot
def map_of(
    snapshot: Snapshot, period: Period, boroughs: tuple[str, ...], hour: pd.Timestamp | None, length: timedelta
) -> tuple[charts.Spec, int]:
    """Trips by zone, of the sessions that began in the window of that length from `hour` on; and how many trips are of zones without a place.

    hour: None for all sessions.
    """
    sessions = chosen_of(snapshot, period, boroughs)
    began = sessions.assign(start=sessions["start"].dt.floor(length))
    by_zone, largest = of_hour(began, ["zone_id", "zone", "borough"], "trips", hour)
    shown = maps.located_zones(by_zone)
    return maps.zones(shown, largest=largest), int(by_zone["trips"].sum() - shown["trips"].sum())


def show_sessions(
    of_page: Snapshot, period: Period, boroughs: tuple[str, ...], hour: pd.Timestamp | None, length: timedelta, zone: str
) -> None:
    """Draws the sessions of the period, once there is one in `boroughs`; none are all. hour, length: of the window that the map shows. zone: the time zone."""
    snapshot = follow(of_page.kafka, TOPIC).snapshot
    show_problem(snapshot, of_page)
    sessions = chosen_of(snapshot, period, boroughs)
    if sessions.empty:
        return
    left, right = st.columns([3, 2])
    caption = f"Trips that each follow another of the zone within five minutes, the newest sessions first, {zone}."
    with panel(left, "Sessions", caption, origin=IN_SESSIONS, of=snapshot):
        _show_table(sessions.head(ROWS_LISTED))
    with panel(
        right,
        "Taxi zones",
        "Trips by zone of pick-up, in the window in which their session began. A click chooses the borough.",
        origin=IN_SESSIONS,
    ):
        spec, elsewhere = map_of(snapshot, period, boroughs, hour, length)
        show_clickable(spec, key="zones", alt="Map: trips by taxi zone", on_click=only("borough", "borough"))
        if elsewhere:
            st.caption(f"{formats.several(elsewhere, 'trip is', 'trips are')} of an unknown zone, and not on the map.")


def _show_table(sessions: pd.DataFrame) -> None:
    st.dataframe(
        sessions,
        hide_index=True,
        column_order=("zone", "trips", "fare_amount_sum", "borough", "start", "end"),
        column_config={
            "zone": "Zone",
            "borough": "Borough",
            "start": st.column_config.DatetimeColumn("First trip", format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
            "end": st.column_config.DatetimeColumn("Open until", format="YYYY-MM-DD HH:mm:ss", timezone="UTC"),
            "trips": "Trips",
            "fare_amount_sum": st.column_config.NumberColumn("Fares", format="$%.2f"),
        },
    )
