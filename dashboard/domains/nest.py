"""Nest cameras: people seen per zip code and hour."""

from datetime import UTC, datetime
from functools import lru_cache

import altair as alt
import pandas as pd
import streamlit as st

from contract.domains.nest import DOMAIN, NEST_CAMERA_STATS
from contract.kafka.result_table import Row, decode_json
from dashboard import charts, formats
from dashboard.page_head import snapshot_under
from dashboard.reading.reader import Snapshot

TOPIC = NEST_CAMERA_STATS.name
UNKNOWN = "unknown"
LARGEST_RANKING = 10
HOURS_CHARTED = 48
ROWS_LISTED = 1_000
_HOURS = {"newest hour": 1, "6 hours": 6, "24 hours": 24, "all hours": None}
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
    return {"zip_code": zip_code, "start": _utc(row["window"]["start"]), "end": _utc(row["window"]["end"]), "count": count}


def _utc(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        msg = f"{text!r} has no time zone"
        raise ValueError(msg)
    return moment.astimezone(UTC)


@lru_cache(maxsize=1)
def sightings_of(snapshot: Snapshot) -> pd.DataFrame:
    """One row per zip code and hour: zip_code, start, end (UTC), count. Computed once per snapshot; do not modify it."""
    frame = pd.DataFrame(list(snapshot.rows), columns=["zip_code", "start", "end", "count"])
    return frame.astype({"start": "datetime64[ms, UTC]", "end": "datetime64[ms, UTC]"})


def newest_hours(sightings: pd.DataFrame, hours: int | None) -> pd.DataFrame:
    """The rows of the newest `hours` hours, counted back from the newest window's end; all if None."""
    if hours is None or sightings.empty:
        return sightings
    return sightings[sightings["end"] > sightings["end"].max() - pd.Timedelta(hours=hours)]


def busiest(sightings: pd.DataFrame) -> pd.DataFrame:
    """The zip codes with the most sightings in the newest hour: name, count, before (the hour before; 0 if none)."""
    newest = sightings[sightings["start"] == sightings["start"].max()]
    before = sightings[sightings["end"] == sightings["start"].max()].set_index("zip_code")["count"]
    ranking = newest.rename(columns={"zip_code": "name"}).sort_values(["count", "name"], ascending=[False, True]).head(LARGEST_RANKING)
    return ranking.assign(before=ranking["name"].map(before).fillna(0).astype("int64"))[["name", "count", "before"]]


def over_time(sightings: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The largest zip codes per hour, the rest as others: (name, start, end, count), and the names by size."""
    largest = sightings.groupby("zip_code")["count"].sum().nlargest(charts.LARGEST_SERIES).index
    named = sightings.assign(name=sightings["zip_code"].where(sightings["zip_code"].isin(largest), charts.OTHERS))
    series = named.groupby(["name", "start", "end"])["count"].sum().reset_index()
    return series, [*largest, *([charts.OTHERS] if charts.OTHERS in set(series["name"]) else [])]


@st.fragment(run_every="2s")
def page() -> None:
    """Draws the page and refreshes it every two seconds."""
    snapshot = snapshot_under(DOMAIN.title, TOPIC, decode, _WAITING)
    if snapshot is None:
        return
    sightings = sightings_of(snapshot)
    _show_totals(sightings)
    left, right = st.columns([2, 3])
    with left.container(border=True, height="stretch", gap="xsmall"):
        _show_busiest(sightings)
    with right.container(border=True, height="stretch", gap="xsmall"):
        _show_over_time(sightings)
    with st.container(border=True):
        _show_table(sightings)


def _show_totals(sightings: pd.DataFrame) -> None:
    newest, end = sightings["start"].max(), sightings["end"].max()
    in_newest = sightings.loc[sightings["start"] == newest, "count"].sum()
    before = sightings.loc[sightings["end"] == newest, "count"].sum()
    unknown = sightings.loc[sightings["zip_code"] == UNKNOWN, "count"].sum()
    totals = [
        ("Newest hour, so far", in_newest, formats.window(newest, end)),
        ("Hour before", before, formats.window(newest - (end - newest), newest)),
        ("All hours", sightings["count"].sum(), formats.several(sightings["start"].nunique(), "hour", "hours") + " counted"),
        ("Zip code unknown", unknown, "seen by cameras without a location"),
    ]
    for column, (label, number, meaning) in zip(st.columns(len(totals)), totals, strict=True):
        column.metric(label, formats.count(number), delta=meaning, delta_color="off", delta_arrow="off", border=True)


def _show_busiest(sightings: pd.DataFrame) -> None:
    st.subheader("Busiest zip codes", anchor=False)
    st.caption("People seen in the newest hour. Pale: the whole hour before.")
    _draw(
        charts.ranked_bars(busiest(sightings), name_title="zip code", count_title="people seen"),
        "Bars: people seen in the newest hour, by zip code",
    )


def _show_over_time(sightings: pd.DataFrame) -> None:
    series, names = over_time(newest_hours(sightings, HOURS_CHARTED))
    st.subheader("Sightings over time", anchor=False)
    st.caption(f"People seen per hour and zip code, newest {HOURS_CHARTED} hours, times in UTC.")
    _draw(
        charts.stacked_windows(series, names=names, count_title="people seen", name_title="zip code"),
        "Stacked bars: people seen per hour, by zip code",
    )


def _draw(chart: alt.Chart | alt.LayerChart, described: str) -> None:
    st.altair_chart(chart, width="stretch", alt=described)


def _show_table(sightings: pd.DataFrame) -> None:
    st.subheader("All counts", anchor=False)
    by_zip_code, by_hours, by_count = st.columns([3, 2, 1])
    zip_codes = by_zip_code.multiselect("Zip codes", sorted(sightings["zip_code"].unique()), placeholder="all", key="nest-zip-codes")
    hours = by_hours.segmented_control("Hours", list(_HOURS), default="24 hours", required=True, key="nest-hours")
    smallest = by_count.number_input("People seen, at least", min_value=0, value=0, step=1, key="nest-smallest")
    listed = newest_hours(sightings, _HOURS[hours or "all hours"])
    listed = listed[listed["zip_code"].isin(zip_codes or listed["zip_code"]) & (listed["count"] >= smallest)]
    listed = listed.sort_values(["start", "count", "zip_code"], ascending=[False, False, True])
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
    st.caption(f"{formats.count(len(shown))} of {formats.several(len(listed), 'row', 'rows')} that the filters leave.")
