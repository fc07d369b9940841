"""NYC green taxi: trips, fares and tips per borough and window of time, which is an hour by default.

Window times are New York local times carried as UTC (see contract/topics.py). They are shown unconverted.
"""

from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pandas as pd
import streamlit as st

from contract.domains.taxi import DOMAIN, TAXI_BOROUGH_STATS, TAXI_FLOWS
from dashboard import charts, formats, maps
from dashboard.domains.taxi_sessions import show_sessions, with_known_boroughs
from dashboard.drill_down import only, show_clickable
from dashboard.glance import Glance
from dashboard.origin import Origin
from dashboard.page_head import dashboard_settings, panel, refreshing, show_totals, snapshot_under
from dashboard.periods import Period, choose_hour, choose_period, go_to
from dashboard.reading.reader import follow
from dashboard.reading.states import show_problem
from dashboard.windows import frame_of, newest, noun_of, of_hour, over_time, per_window
from infrastructure.kafka.follower import Snapshot, per_snapshot
from infrastructure.rows import Row

TOPIC, FLOWS = TAXI_BOROUGH_STATS, TAXI_FLOWS
COUNTED = Origin(TOPIC, "taxi-borough-stats", "borough_stats", "pipeline/domains/taxi.py")
FROM_TO = Origin(FLOWS, "taxi-flows", "flows", "pipeline/domains/taxi.py")
ZONE = "New York time"
SUMS = ("trip_distance_sum", "fare_amount_sum", "tip_amount_sum")
COLUMNS = ("borough", "start", "end", "trips", *SUMS)
FLOW_COLUMNS = ("pickup_borough", "dropoff_borough", "start", "end", "trips")
_BOROUGH_PIXELS = 50
"""The height of a row, with which the table of boroughs is about as high as the map beside it."""
_EPOCH, _AN_HOUR, _TWO_DAYS = datetime(1970, 1, 1, tzinfo=UTC), timedelta(hours=1), timedelta(hours=48)
_PERIODS = {"24 hours": timedelta(hours=24), "48 hours": _TWO_DAYS, "7 days": timedelta(days=7), "all": None}
_WAITING = (
    "The numbers appear here once the pipeline has counted a trip. `streamgauge demo` starts everything: taxis, the pipeline, and the rest."
)


@per_snapshot
def rides_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per borough and hour, two for UNKNOWN if there are trips of both kinds: COLUMNS."""
    return with_known_boroughs(frame_of(filter(_is_apart, snapshot.rows), COLUMNS).fillna(dict.fromkeys(SUMS, 0.0)))


def _is_apart(row: Row) -> bool:
    """Of windows that overlap, whether it starts at a multiple of its length: each trip is in one of these."""
    return not (row["start"] - _EPOCH) % (row["end"] - row["start"])


def glance() -> Glance | None:
    """The newest window, and a map of the last two days."""
    return _glance_of(follow(dashboard_settings().kafka, TOPIC).snapshot)


@per_snapshot
def _glance_of(snapshot: Snapshot) -> Glance | None:
    rows = [row for row in newest(snapshot.rows, _TWO_DAYS) if _is_apart(row)]
    if not rows:
        return None
    last = max(rows, key=itemgetter("start"))
    *before, now = per_window(rows, "trips", last["end"] - last["start"])

    def picture() -> charts.Spec:
        shown, largest = of_hour(with_known_boroughs(frame_of(rows, COLUMNS)), ["borough"], "trips", None)
        return charts.thumbnail(maps.boroughs(shown, largest=largest))

    return Glance(
        f"Trips in the newest {noun_of(last['start'], last['end'])}",
        formats.count(now),
        f"{formats.day(last['start'])}, {formats.hours(last['start'], last['end'])}, {ZONE}",
        COUNTED,
        before,
        picture,
        "Map: trips in the last 48 hours, by borough",
    )


@per_snapshot
def chosen_of(snapshot: Snapshot, period: Period, boroughs: tuple[str, ...]) -> pd.DataFrame:
    """The rides of the period from these boroughs; none are all."""
    rides = period.of(rides_of(snapshot))
    return rides[rides["borough"].isin(boroughs or rides["borough"])]


@per_snapshot
def over_time_chart(snapshot: Snapshot, period: Period, boroughs: tuple[str, ...]) -> charts.Spec:
    """Trips per window, by borough."""
    series, names = over_time(chosen_of(snapshot, period, boroughs), "borough", "trips")
    return charts.stacked_windows(series, names=names, count_title="trips", name_title="borough", zone=ZONE)


@per_snapshot
def hours_chart(snapshot: Snapshot, period: Period, boroughs: tuple[str, ...]) -> charts.Spec:
    return charts.hours_of_day(by_hour_of_day(chosen_of(snapshot, period, boroughs), period.of(rides_of(snapshot))))


@per_snapshot
def map_of(snapshot: Snapshot, period: Period, boroughs: tuple[str, ...], hour: pd.Timestamp | None) -> charts.Spec:
    """Trips by borough, in one window, or in all if None."""
    shown, largest = of_hour(chosen_of(snapshot, period, boroughs), ["borough"], "trips", hour)
    return maps.boroughs(shown, largest=largest)


@per_snapshot
def flows_of(snapshot: Snapshot, period: Period, boroughs: tuple[str, ...]) -> pd.DataFrame:
    """Trips from borough to borough: a row per pick-up, a column per drop-off, both with the most trips first. snapshot: of FLOWS."""
    flows = period.of(with_known_boroughs(frame_of(snapshot.rows, FLOW_COLUMNS)))
    chosen = flows[flows["pickup_borough"].isin(boroughs or flows["pickup_borough"])]
    matrix = chosen.pivot_table("trips", "pickup_borough", "dropoff_borough", aggfunc="sum", fill_value=0)
    pickups, dropoffs = (one.sum(axis="columns").sort_values(ascending=False).index for one in (matrix, matrix.T))
    return matrix.reindex(index=pickups, columns=dropoffs)


def by_borough(rides: pd.DataFrame) -> pd.DataFrame:
    """One row per borough, largest first: borough, trips, and fare, tip (dollars) and distance (miles) of the average trip."""
    totals = rides.groupby("borough")[["trips", *SUMS]].sum().sort_values("trips", ascending=False).reset_index()
    averages = {"fare": "fare_amount_sum", "tip": "tip_amount_sum", "distance": "trip_distance_sum"}
    return totals[["borough", "trips"]].assign(**{name: totals[total] / totals["trips"] for name, total in averages.items()})


def by_hour_of_day(rides: pd.DataFrame, of_all: pd.DataFrame) -> pd.DataFrame:
    """The average number of trips in each hour of the day (0 to 23), over the hours of `of_all`: hour, trips.

    of_all: the rides from all boroughs. The windows must be parts of an hour, or whole ones.
    """
    hours = pd.Index(of_all["start"].dt.floor("h").unique(), name="hour")
    trips = rides.groupby(rides["start"].dt.floor("h"))["trips"].sum().reindex(hours, fill_value=0)
    return trips.groupby(hours.hour).mean().reindex(range(24), fill_value=0).reset_index()


@refreshing
def page() -> None:
    snapshot = snapshot_under(DOMAIN.title, TOPIC, _WAITING)
    if snapshot is not None:
        _show(snapshot)


def _show(snapshot: Snapshot) -> None:
    rides = rides_of(snapshot)
    if left_out := len(snapshot.rows) - len(rides):
        st.caption(
            f"{formats.several(left_out, 'row', 'rows')} of windows that overlap others are left out, so that each trip counts once."
        )
    if rides.empty:
        return
    start, end = rides["start"].max(), rides["end"].max()
    st.caption(f"The stream plays {start:%A}, {formats.day(start)}, {formats.hours(start, end)}. All times are {ZONE}.")
    by_name, by_period = st.columns([3, 2])
    boroughs = by_name.multiselect(
        "Boroughs of pick-up", sorted(rides["borough"].unique()), placeholder="all", key="borough", bind="query-params"
    )
    filters = choose_period(by_period, rides, _PERIODS, "48 hours"), tuple(boroughs)
    chosen = chosen_of(snapshot, *filters)
    if chosen.empty:
        st.info("No trips in these boroughs in this period; choose more of either.")
        return
    noun = noun_of(start, end)
    _show_totals(chosen, start, noun)
    with panel(
        st.container(),
        "Trips over time",
        f"Trips per {noun} of drop-off, by borough of pick-up, {ZONE}. A click chooses the {noun}.",
        origin=COUNTED,
    ):
        alt = f"Stacked bars: trips per {noun}, by borough"
        show_clickable(over_time_chart(snapshot, *filters), key="over-time", alt=alt, on_click=go_to)
    left, middle, right = st.columns([4, 3, 3])
    with panel(left, "Boroughs", "The average trip from each borough.", origin=COUNTED):
        _show_boroughs(by_borough(chosen))
    with panel(middle, "Where", origin=COUNTED):
        hour = choose_hour(chosen["start"], noun)
        st.caption("Trips by borough of pick-up. A click chooses the borough.")
        show_clickable(map_of(snapshot, *filters, hour), key="map", alt="Map: trips by borough", on_click=only("borough", "name"))
    if all(not _AN_HOUR % length for length in (chosen["end"] - chosen["start"]).unique()):
        with panel(right, "Busiest hours", f"Trips in an average hour, by hour of the day, {ZONE}.", origin=COUNTED):
            st.vega_lite_chart(hours_chart(snapshot, *filters), width="stretch", alt="Bars: trips by hour of the day")
    flows = follow(snapshot.kafka, FLOWS).snapshot
    show_problem(flows, snapshot)
    if flows.rows:
        with panel(st.container(), "From borough to borough", origin=FROM_TO, of=flows):
            _show_flows(flows_of(flows, *filters))
    show_sessions(snapshot, *filters, hour, end - start, ZONE)


def _show_flows(table: pd.DataFrame) -> None:
    if table.empty:
        st.caption("No trips are counted from borough to borough in this period.")
        return
    st.caption("Trips by borough of pick-up, in rows, and of drop-off, in columns.")
    largest = int(table.to_numpy().max())
    bars = {
        name: st.column_config.ProgressColumn(name, format="%,d", min_value=0, max_value=largest, color="primary")
        for name in map(str, table)
    }
    st.dataframe(table, column_config={"pickup_borough": st.column_config.TextColumn("Pick-up", pinned=True), **bars})


def _show_totals(rides: pd.DataFrame, newest: pd.Timestamp, noun: str) -> None:
    trips, fares, tips = rides["trips"].sum(), rides["fare_amount_sum"].sum(), rides["tip_amount_sum"].sum()
    last = rides.loc[rides["start"] == rides["start"].max()]
    totals = [
        ("Trips", formats.count(int(trips)), formats.several(rides["start"].nunique(), noun, f"{noun}s") + " counted"),
        (
            f"Newest {noun}, so far" if last["start"].max() == newest else f"Last of these {noun}s",
            formats.count(int(last["trips"].sum())),
            formats.hours(last["start"].max(), last["end"].max()),
        ),
        ("Fares", formats.dollars(fares), f"{formats.dollars(fares / trips, cents=True)} a trip"),
        ("Tips", formats.dollars(tips), f"{formats.dollars(tips / trips, cents=True)} a trip"),
    ]
    show_totals(totals)


def _show_boroughs(table: pd.DataFrame) -> None:
    st.dataframe(
        table,
        hide_index=True,
        height="content",
        row_height=_BOROUGH_PIXELS,
        column_config={
            "borough": st.column_config.TextColumn("Borough"),
            "trips": st.column_config.ProgressColumn(
                "Trips", format="%,d", min_value=0, max_value=int(table["trips"].max()), color="primary"
            ),
            "fare": st.column_config.NumberColumn("Fare", format="$%.2f"),
            "tip": st.column_config.NumberColumn("Tip", format="$%.2f"),
            "distance": st.column_config.NumberColumn("Distance, miles", format="%.1f"),
        },
    )
