"""Nest cameras: people seen per zip code and window of time, which is an hour by default."""

from dataclasses import dataclass
from datetime import timedelta
from operator import itemgetter

import pandas as pd
import streamlit as st

from contract.domains.nest import DOMAIN, NEST_CAMERA_STATS
from dashboard import charts, formats, maps
from dashboard.domains.nest_cameras import show_cameras
from dashboard.drill_down import only, show_clickable
from dashboard.glance import Glance
from dashboard.origin import Origin
from dashboard.page_head import dashboard_settings, panel, refreshing, show_totals, snapshot_under
from dashboard.periods import Period, choose_hour, choose_period, go_to
from dashboard.reading.reader import follow
from dashboard.windows import frame_of, newest, noun_of, of_hour, over_time, per_window
from infrastructure.kafka.follower import Snapshot, per_snapshot

TOPIC = NEST_CAMERA_STATS
COUNTED = Origin(TOPIC, "nest-camera-stats", "camera_stats", "pipeline/domains/nest.py")
UNKNOWN = "unknown"
MAX_RANKING = 10
ROWS_LISTED = 1_000
_COLUMNS, _DAY = ("zip_code", "start", "end", "count"), timedelta(hours=24)
_PERIODS = {"hour": timedelta(hours=1), "6 hours": timedelta(hours=6), "24 hours": _DAY, "all": None}
_WAITING = (
    "The numbers appear here once a camera has seen a person and the pipeline has counted it. "
    "`streamgauge demo` starts everything: cameras, the pipeline, and the rest."
)


@dataclass(frozen=True)
class Filters:
    """What the reader has chosen. zip_codes: none are all. least: the smallest count of a row."""

    period: Period
    zip_codes: tuple[str, ...]
    least: int


@per_snapshot
def sightings_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per zip code and window: zip_code, start, end (UTC), count."""
    return frame_of(snapshot.rows, _COLUMNS)


@per_snapshot
def matching_of(snapshot: Snapshot, filters: Filters) -> pd.DataFrame:
    """The sightings of any time that the filters leave."""
    sightings = sightings_of(snapshot)
    return sightings[sightings["zip_code"].isin(filters.zip_codes or sightings["zip_code"]) & (sightings["count"] >= filters.least)]


@per_snapshot
def chosen_of(snapshot: Snapshot, filters: Filters) -> pd.DataFrame:
    """The sightings that the filters leave."""
    return filters.period.of(matching_of(snapshot, filters))


def glance() -> Glance | None:
    """The newest window, and a map of the last day."""
    return _glance_of(follow(dashboard_settings().kafka, TOPIC).snapshot)


@per_snapshot
def _glance_of(snapshot: Snapshot) -> Glance | None:
    rows = newest(snapshot.rows, _DAY)
    if not rows:
        return None
    last = max(rows, key=itemgetter("start"))
    *before, now = per_window(rows, "count", last["end"] - last["start"])
    return Glance(
        f"People seen in the newest {noun_of(last['start'], last['end'])}",
        formats.count(now),
        f"{formats.window(last['start'], last['end'])} UTC",
        COUNTED,
        before,
        lambda: charts.thumbnail(_map(frame_of(rows, _COLUMNS), None)[0]),
        "Map: people seen in the last 24 hours, by state and zip code",
    )


def busiest(sightings: pd.DataFrame, of_any_time: pd.DataFrame) -> pd.DataFrame:
    """The zip codes with the most sightings in the newest window: name, count, before (the window before; 0 if none).

    of_any_time: `sightings`, and those before.
    """
    newest = sightings[sightings["start"] == sightings["start"].max()]
    before = of_any_time[of_any_time["end"] == sightings["start"].max()].groupby("zip_code")["count"].sum()
    ranking = newest.rename(columns={"zip_code": "name"}).sort_values(["count", "name"], ascending=[False, True]).head(MAX_RANKING)
    return ranking.assign(before=ranking["name"].map(before).fillna(0).astype("int64"))[["name", "count", "before"]]


@refreshing
def page() -> None:
    snapshot = snapshot_under(DOMAIN.title, TOPIC, _WAITING)
    if snapshot is None:
        return
    filters = _filters(sightings_of(snapshot))
    sightings = chosen_of(snapshot, filters)
    if sightings.empty:
        st.info(
            "No sightings match these filters. Choose more zip codes, a longer period, or a smaller count.", icon=":material/filter_alt:"
        )
        return
    noun = noun_of(sightings["start"].max(), sightings["end"].max())
    _show_totals(sightings, matching_of(snapshot, filters), sightings_of(snapshot)["start"].max(), noun)
    left, right = st.columns([2, 3])
    with panel(
        left,
        "Busiest zip codes",
        f"People seen in the newest {noun}. Pale: the whole {noun} before. A click chooses the zip code.",
        origin=COUNTED,
    ):
        alt = f"Bars: people seen in the newest {noun}, by zip code"
        show_clickable(busiest_chart(snapshot, filters), key="busiest", alt=alt, on_click=only("zip", "name"))
    with panel(
        right, "Sightings over time", f"People seen per {noun} and zip code, times in UTC. A click chooses the {noun}.", origin=COUNTED
    ):
        alt = f"Stacked bars: people seen per {noun}, by zip code"
        show_clickable(over_time_chart(snapshot, filters), key="over-time", alt=alt, on_click=go_to)
    show_cameras(snapshot, filters.zip_codes)
    left, right = st.columns(2)
    with panel(left, "Where", origin=COUNTED):
        _show_map(snapshot, filters, noun)
    with panel(right, "Counts", origin=COUNTED):
        _show_table(sightings)


def _filters(sightings: pd.DataFrame) -> Filters:
    by_zip_code, by_period, by_count = st.columns([3, 2, 1])
    zip_codes = by_zip_code.multiselect(
        "Zip codes", sorted(sightings["zip_code"].unique()), placeholder="all", key="zip", bind="query-params"
    )
    least = by_count.number_input("People seen, at least", min_value=0, value=0, step=1, key="least", bind="query-params")
    return Filters(choose_period(by_period, sightings, _PERIODS, "24 hours"), tuple(zip_codes), least)


@per_snapshot
def busiest_chart(snapshot: Snapshot, filters: Filters) -> charts.Spec:
    ranking = busiest(chosen_of(snapshot, filters), matching_of(snapshot, filters))
    return charts.ranked_bars(ranking, name_title="zip code", count_title="people seen")


@per_snapshot
def over_time_chart(snapshot: Snapshot, filters: Filters) -> charts.Spec:
    """People seen per window, by zip code."""
    series, names = over_time(chosen_of(snapshot, filters), "zip_code", "count")
    return charts.stacked_windows(series, names=names, count_title="people seen", name_title="zip code")


@per_snapshot
def map_of(snapshot: Snapshot, filters: Filters, hour: pd.Timestamp | None) -> tuple[charts.Spec, int]:
    """The map of a window, or of all if None, and how many people were seen at zip codes that are not on it."""
    return _map(chosen_of(snapshot, filters), hour)


def _map(chosen: pd.DataFrame, hour: pd.Timestamp | None) -> tuple[charts.Spec, int]:
    placed = maps.located(chosen)
    by_zip_code, largest = of_hour(placed, ["zip_code", "latitude", "longitude"], "count", hour)
    by_state, largest_state = of_hour(placed, ["state"], "count", hour)
    elsewhere, _ = of_hour(chosen[~chosen["zip_code"].isin(placed["zip_code"])], ["zip_code"], "count", hour)
    spec = maps.zip_codes(by_zip_code, by_state, count_title="people seen", largest=largest, largest_state=largest_state)
    return spec, int(elsewhere["count"].sum())


def _show_totals(sightings: pd.DataFrame, of_any_time: pd.DataFrame, current: pd.Timestamp, noun: str) -> None:
    newest, end = sightings["start"].max(), sightings["end"].max()
    in_newest = sightings.loc[sightings["start"] == newest, "count"].sum()
    before = of_any_time.loc[of_any_time["end"] == newest, "count"].sum()
    unknown = sightings.loc[sightings["zip_code"] == UNKNOWN, "count"].sum()
    totals = [
        (
            f"Newest {noun}, so far" if newest == current else f"Last of these {noun}s",
            in_newest,
            formats.window(newest, end),
        ),
        (f"{noun.capitalize()} before", before, formats.window(newest - (end - newest), newest)),
        (f"All of these {noun}s", sightings["count"].sum(), formats.several(sightings["start"].nunique(), noun, f"{noun}s") + " counted"),
        ("Zip code unknown", unknown, "without a location"),
    ]
    show_totals((label, formats.count(number), meaning) for label, number, meaning in totals)


def _show_map(snapshot: Snapshot, filters: Filters, noun: str) -> None:
    hour = choose_hour(chosen_of(snapshot, filters)["start"], noun)
    spec, elsewhere = map_of(snapshot, filters, hour)
    unplaced = f" {formats.several(elsewhere, 'person was', 'people were')} seen at zip codes that are not on the map." if elsewhere else ""
    st.caption(f"People seen, by state and zip code. A click on a circle chooses its zip code.{unplaced}")
    show_clickable(
        spec, key="map", alt="Map: people seen, states in shades and a circle for each zip code", on_click=only("zip", "zip_code")
    )


def _show_table(sightings: pd.DataFrame) -> None:
    listed = sightings.sort_values(["start", "count", "zip_code"], ascending=[False, False, True])
    shown = listed.head(ROWS_LISTED)
    st.dataframe(
        shown[["start", "zip_code", "count", "end"]],
        hide_index=True,
        height=430,
        column_config={
            "start": st.column_config.DatetimeColumn("From (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC"),
            "end": st.column_config.DatetimeColumn("To (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC"),
            "zip_code": st.column_config.TextColumn("Zip code"),
            "count": st.column_config.ProgressColumn(
                "People seen", format="%,d", min_value=0, max_value=int(sightings["count"].max()), color="primary"
            ),
        },
    )
    st.caption(f"The newest {formats.count(len(shown))} of {formats.several(len(listed), 'row', 'rows')}.")
