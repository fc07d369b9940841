"""Nest cameras: people seen per zip code and hour."""

from datetime import timedelta
from functools import lru_cache

import pandas as pd
import streamlit as st

from contract.domains.nest import DOMAIN, NEST_CAMERA_STATS
from contract.kafka.result_table import Row, decode_json
from dashboard import charts, formats, maps
from dashboard.domains.nest_cameras import show_cameras
from dashboard.page_head import refreshing, show_totals, snapshot_under
from dashboard.reading.reader import Snapshot
from dashboard.windows import frame_of, newest, over_time, window_of

TOPIC = NEST_CAMERA_STATS.name
UNKNOWN = "unknown"
LARGEST_RANKING = 10
ROWS_LISTED = 1_000
_PERIODS = {"hour": timedelta(hours=1), "6 hours": timedelta(hours=6), "24 hours": timedelta(hours=24), "all hours": None}
_WAITING = (
    "As soon as a camera has seen a person and the pipeline has counted it, the numbers appear here by themselves. "
    "`streamgauge demo` starts cameras, pipeline and all."
)


def decode(value: bytes) -> Row:
    """zip_code, start, end (UTC), count of one record. Raises KeyError, TypeError or ValueError for any other record."""
    row = decode_json(value)
    zip_code, count = row["zip_code"], row["count"]
    if not isinstance(zip_code, str) or not isinstance(count, int):
        msg = f"expected zip_code as a text and count as a whole number, found {type(zip_code).__name__} and {type(count).__name__}"
        raise TypeError(msg)
    return {"zip_code": zip_code, **window_of(row), "count": count}


@lru_cache(maxsize=1)
def sightings_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per zip code and hour: zip_code, start, end (UTC), count. Computed once per snapshot; do not modify it."""
    return frame_of(snapshot.rows, ("zip_code", "start", "end", "count"))


def busiest(sightings: pd.DataFrame) -> pd.DataFrame:
    """The zip codes with the most sightings in the newest hour: name, count, before (the hour before; 0 if none)."""
    newest = sightings[sightings["start"] == sightings["start"].max()]
    before = sightings[sightings["end"] == sightings["start"].max()].set_index("zip_code")["count"]
    ranking = newest.rename(columns={"zip_code": "name"}).sort_values(["count", "name"], ascending=[False, True]).head(LARGEST_RANKING)
    return ranking.assign(before=ranking["name"].map(before).fillna(0).astype("int64"))[["name", "count", "before"]]


@refreshing
def page() -> None:
    """Draws the page."""
    snapshot = snapshot_under(DOMAIN.title, TOPIC, decode, _WAITING)
    if snapshot is None:
        return
    sightings, zip_codes = _filtered(sightings_of(snapshot))
    if sightings.empty:
        st.info("No sightings match these filters. Choose more zip codes, more hours, or a smaller count.", icon=":material/filter_alt:")
        return
    _show_totals(sightings)
    left, right = st.columns([2, 3])
    with left.container(border=True, height="stretch", gap="xsmall"):
        _show_busiest(sightings)
    with right.container(border=True, height="stretch", gap="xsmall"):
        _show_over_time(sightings)
    show_cameras(snapshot.kafka, zip_codes)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch", gap="xsmall"):
        _show_map(sightings)
    with right.container(border=True, height="stretch", gap="xsmall"):
        _show_table(sightings)


def _filtered(sightings: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Draws the filters. Returns the rows that match them, and the zip codes chosen; none are all."""
    by_zip_code, by_hours, by_count = st.columns([3, 2, 1])
    zip_codes = by_zip_code.multiselect(
        "Zip codes", sorted(sightings["zip_code"].unique()), placeholder="all", key="zip", bind="query-params"
    )
    hours = by_hours.segmented_control("Newest", list(_PERIODS), default="24 hours", required=True, key="hours", bind="query-params")
    smallest = by_count.number_input("People seen, at least", min_value=0, value=0, step=1, key="least", bind="query-params")
    chosen = newest(sightings, _PERIODS[hours or "all hours"])
    return chosen[chosen["zip_code"].isin(zip_codes or chosen["zip_code"]) & (chosen["count"] >= smallest)], zip_codes


def _show_totals(sightings: pd.DataFrame) -> None:
    newest, end = sightings["start"].max(), sightings["end"].max()
    in_newest = sightings.loc[sightings["start"] == newest, "count"].sum()
    before = sightings.loc[sightings["end"] == newest, "count"].sum()
    unknown = sightings.loc[sightings["zip_code"] == UNKNOWN, "count"].sum()
    totals = [
        ("Newest hour, so far", in_newest, formats.window(newest, end)),
        ("Hour before", before, formats.window(newest - (end - newest), newest)),
        ("All of these hours", sightings["count"].sum(), formats.several(sightings["start"].nunique(), "hour", "hours") + " counted"),
        ("Zip code unknown", unknown, "seen by cameras without a location"),
    ]
    show_totals((label, formats.count(number), meaning) for label, number, meaning in totals)


def _show_busiest(sightings: pd.DataFrame) -> None:
    st.header("Busiest zip codes", anchor=False)
    st.caption("People seen in the newest hour. Pale: the whole hour before.")
    chart = charts.ranked_bars(busiest(sightings), name_title="zip code", count_title="people seen")
    st.altair_chart(chart, width="stretch", alt="Bars: people seen in the newest hour, by zip code")


def _show_over_time(sightings: pd.DataFrame) -> None:
    series, names = over_time(sightings, "zip_code", "count")
    st.header("Sightings over time", anchor=False)
    st.caption("People seen per hour and zip code, times in UTC.")
    chart = charts.stacked_windows(series, names=names, count_title="people seen", name_title="zip code")
    st.altair_chart(chart, width="stretch", alt="Stacked bars: people seen per hour, by zip code")


def _show_map(sightings: pd.DataFrame) -> None:
    counts = sightings.groupby("zip_code")["count"].sum().reset_index()
    shown = maps.located(counts)
    elsewhere = int(counts["count"].sum() - shown["count"].sum())
    st.header("Where", anchor=False)
    unplaced = f" {formats.several(elsewhere, 'person was', 'people were')} seen at zip codes that are not on the map." if elsewhere else ""
    st.caption(f"People seen, by zip code.{unplaced}")
    st.vega_lite_chart(
        spec=maps.zip_codes(shown, count_title="people seen"), width="stretch", alt="Map: people seen, a circle for each zip code"
    )


def _show_table(sightings: pd.DataFrame) -> None:
    listed = sightings.sort_values(["start", "count", "zip_code"], ascending=[False, False, True])
    st.header("Counts", anchor=False)
    shown = listed.head(ROWS_LISTED)
    st.dataframe(
        shown[["start", "end", "zip_code", "count"]],
        hide_index=True,
        height=330,
        column_config={
            "start": st.column_config.DatetimeColumn("From (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC"),
            "end": st.column_config.DatetimeColumn("To (UTC)", format="YYYY-MM-DD HH:mm", timezone="UTC"),
            "zip_code": st.column_config.TextColumn("Zip code"),
            "count": st.column_config.ProgressColumn(
                "People seen", format="%d", min_value=0, max_value=int(sightings["count"].max()), color="primary"
            ),
        },
    )
    st.caption(f"The newest {formats.count(len(shown))} of {formats.several(len(listed), 'row', 'rows')}.")
