"""NYC green taxi: trips, fares and tips per borough and hour.

Window times are New York local times carried as UTC (see contract/topics.py). They are shown unconverted.
"""

from datetime import timedelta
from functools import lru_cache

import pandas as pd
import streamlit as st

from contract.domains.taxi import DOMAIN, TAXI_BOROUGH_STATS
from contract.kafka.result_table import Row, decode_json
from dashboard import charts, formats, maps
from dashboard.page_head import refreshing, show_totals, snapshot_under
from dashboard.reading.reader import Snapshot
from dashboard.windows import frame_of, newest, over_time, window_of

TOPIC = TAXI_BOROUGH_STATS.name
ZONE = "New York time"
UNKNOWN, NOT_APPLICABLE = "Unknown", "N/A"
"""TLC has a zone for "unknown" and one for "N/A". To a reader both are unknown."""
SUMS = ("trip_distance_sum", "fare_amount_sum", "tip_amount_sum", "total_amount_sum")
COLUMNS = ("borough", "start", "end", "trips", *SUMS)
_PERIODS = {"24 hours": timedelta(hours=24), "48 hours": timedelta(hours=48), "7 days": timedelta(days=7), "all": None}
_WAITING = (
    "As soon as the pipeline has counted a trip, the numbers appear here by themselves. `streamgauge demo` starts taxis, pipeline and all."
)


def decode(value: bytes) -> Row:
    """COLUMNS of one record, times as datetime. Raises KeyError, TypeError or ValueError for any other record."""
    row = decode_json(value)
    if not isinstance(row["borough"], str) or not isinstance(row["trips"], int):
        msg = f"expected borough as a text and trips as a whole number, found {type(row['borough']).__name__} and {type(row['trips']).__name__}"
        raise TypeError(msg)
    borough = UNKNOWN if row["borough"] == NOT_APPLICABLE else row["borough"]
    return {"borough": borough, **window_of(row), "trips": row["trips"], **{name: float(row[name] or 0) for name in SUMS}}


@lru_cache(maxsize=1)
def rides_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per borough and hour, two for UNKNOWN if there are trips of both kinds: COLUMNS. Computed once per snapshot and shared by all browsers; do not modify it."""
    return frame_of(snapshot.rows, COLUMNS)


def by_borough(rides: pd.DataFrame) -> pd.DataFrame:
    """One row per borough, largest first: borough, trips, and fare, tip (dollars) and distance (miles) of the average trip."""
    totals = rides.groupby("borough")[["trips", *SUMS]].sum().sort_values("trips", ascending=False).reset_index()
    averages = {"fare": "fare_amount_sum", "tip": "tip_amount_sum", "distance": "trip_distance_sum"}
    return totals[["borough", "trips"]].assign(**{name: totals[total] / totals["trips"] for name, total in averages.items()})


def by_hour_of_day(rides: pd.DataFrame) -> pd.DataFrame:
    """The average number of trips in each hour of the day (0 to 23), over the hours replayed: hour, trips."""
    hours = rides.groupby("start")["trips"].sum().reset_index()
    return hours.groupby(hours["start"].dt.hour.rename("hour"))["trips"].mean().reindex(range(24), fill_value=0).reset_index()


@refreshing
def page() -> None:
    """Draws the page."""
    snapshot = snapshot_under(DOMAIN.title, TOPIC, decode, _WAITING, is_recorded=True)
    if snapshot is not None:
        _show(rides_of(snapshot))


def _show(rides: pd.DataFrame) -> None:
    start, end = rides["start"].max(), rides["end"].max()
    st.caption(f"The stream plays {start:%A}, {formats.day(start)}, {formats.hours(start, end)}. All times are {ZONE}.")
    by_name, by_period = st.columns([3, 2])
    boroughs = by_name.multiselect(
        "Boroughs of pick-up", sorted(rides["borough"].unique()), placeholder="all", key="borough", bind="query-params"
    )
    period = by_period.segmented_control("Newest", list(_PERIODS), default="48 hours", required=True, key="period", bind="query-params")
    chosen = newest(rides, _PERIODS[period or "all"])
    chosen = chosen[chosen["borough"].isin(boroughs or chosen["borough"])]
    if chosen.empty:
        st.info("No trips in these boroughs in this period; choose more of either.")
        return
    _show_totals(chosen)
    with st.container(border=True, gap="xsmall"):
        st.header("Trips over time", anchor=False)
        st.caption(f"Trips per hour of drop-off, by borough of pick-up, {ZONE}.")
        series, names = over_time(chosen, "borough", "trips")
        chart = charts.stacked_windows(series, names=names, count_title="trips", name_title="borough", zone=ZONE)
        st.altair_chart(chart, width="stretch", alt="Stacked bars: trips per hour, by borough")
    table = by_borough(chosen)
    left, middle, right = st.columns([4, 3, 3])
    with left.container(border=True, height="stretch", gap="xsmall"):
        _show_boroughs(table)
    with middle.container(border=True, height="stretch", gap="xsmall"):
        st.header("Where", anchor=False)
        st.caption("Trips by borough of pick-up.")
        st.vega_lite_chart(spec=maps.boroughs(table), width="stretch", alt="Map: trips by borough")
    with right.container(border=True, height="stretch", gap="xsmall"):
        st.header("Busiest hours", anchor=False)
        st.caption(f"Trips in an average hour, by hour of the day, {ZONE}.")
        chart = charts.hours_of_day(by_hour_of_day(chosen), count_title="trips")
        st.altair_chart(chart, width="stretch", alt="Bars: trips by hour of the day")


def _show_totals(rides: pd.DataFrame) -> None:
    trips, fares, tips = rides["trips"].sum(), rides["fare_amount_sum"].sum(), rides["tip_amount_sum"].sum()
    last = rides.loc[rides["start"] == rides["start"].max()]
    totals = [
        ("Trips", formats.count(int(trips)), formats.several(rides["start"].nunique(), "hour", "hours") + " counted"),
        ("Newest hour, so far", formats.count(int(last["trips"].sum())), formats.hours(last["start"].max(), last["end"].max())),
        ("Fares", formats.dollars(fares), f"{formats.dollars(fares / trips, cents=True)} a trip"),
        ("Tips", formats.dollars(tips), f"{formats.dollars(tips / trips, cents=True)} a trip"),
    ]
    show_totals(totals)


def _show_boroughs(table: pd.DataFrame) -> None:
    st.header("Boroughs", anchor=False)
    st.caption("The average trip from each borough.")
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "borough": st.column_config.TextColumn("Borough"),
            "trips": st.column_config.ProgressColumn(
                "Trips", format="%d", min_value=0, max_value=int(table["trips"].max()), color="primary"
            ),
            "fare": st.column_config.NumberColumn("Fare", format="$%.2f"),
            "tip": st.column_config.NumberColumn("Tip", format="$%.2f"),
            "distance": st.column_config.NumberColumn("Distance, miles", format="%.1f"),
        },
    )
