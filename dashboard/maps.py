"""Maps that need no tile server: areas and points of data/geometry, drawn by Vega-Lite."""

import json
from functools import cache
from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts import Chart, Spec, picking
from infrastructure.storage.data_files import data_file

_HEIGHT = 330
_LEGEND = alt.Legend(format=",d", orient="bottom", direction="horizontal", gradientLength=180, gradientThickness=10)
_BORDERS: dict[str, Any] = {"stroke": "#7f8c9d", "strokeWidth": 0.8}
_GEOMETRY, _COUNTS, _STATE_COUNTS = alt.NamedData("geometry"), alt.NamedData("counts"), alt.NamedData("states")


def boroughs(trips: pd.DataFrame, *, largest: int) -> Spec:
    """New York's boroughs, the darker the more trips. trips: columns borough, trips. Boroughs that have none are the palest.

    largest: the number of trips that is darkest, so that the maps of several hours can be compared.
    """
    shapes = _shaded(_COUNTS, "borough", "trips", "trips", largest).mark_geoshape(**_BORDERS, cursor="pointer")
    return _spec(shapes.add_params(picking("name")).project("mercator"), "nyc_boroughs.json", trips[["borough", "trips"]])


def zip_codes(counts: pd.DataFrame, states: pd.DataFrame, *, count_title: str, largest: int, largest_state: int) -> Spec:
    """The United States: each state the darker the more it has, with a circle at each zip code, its area by the count.

    counts: columns zip_code, latitude, longitude, count. states: state, count. largest, largest_state: the count of the largest circle, and of the darkest state.
    """
    count = alt.Tooltip("count:Q", title=count_title, format=",")
    shades = _shaded(_STATE_COUNTS, "state", "count", count_title, largest_state)
    circles = _circles("count", largest, [alt.Tooltip("zip_code:N", title="zip code"), count], "zip_code")
    circles = circles.mark_circle(fill="#ffffff", fillOpacity=0.6, stroke="#374151", strokeWidth=1, opacity=1, cursor="pointer")
    # Else Vega-Lite would make one legend of both scales.
    both = alt.layer(shades, circles).project("albersUsa").resolve_scale(color="independent", size="independent")
    spec = _spec(both, "us_states.json", _smallest_last(counts, "count"))
    return spec | {"datasets": spec["datasets"] | {_STATE_COUNTS.name: states}}


def located(counts: pd.DataFrame) -> pd.DataFrame:
    """The rows of `counts` whose zip_code has a place on the map, with latitude, longitude and state ("": a territory)."""
    return counts.merge(_places(), on="zip_code")


def zones(trips: pd.DataFrame, *, largest: int) -> Spec:
    """New York with a circle at each taxi zone, its area by the trips. trips: see `located_zones`. largest: the trips of the largest circle."""
    tooltip = [alt.Tooltip("zone:N"), alt.Tooltip("borough:N"), alt.Tooltip("trips:Q", format=",")]
    circles = _circles("trips", largest, tooltip, "borough")
    land = alt.Chart(_GEOMETRY).mark_geoshape(fillOpacity=0.12, aria=False)
    return _spec(alt.layer(land, circles).project("mercator"), "nyc_boroughs.json", _smallest_last(trips, "trips"))


def located_zones(trips: pd.DataFrame) -> pd.DataFrame:
    """The rows of `trips` (zone_id, zone, borough, trips) whose zone has a place on the map, with latitude and longitude."""
    return trips.merge(_zone_places(), on="zone_id")


def _shaded(counts: alt.NamedData, name: str, count: str, count_title: str, largest: int) -> alt.Chart:
    """The areas, each the darker the more it has. counts: columns `name`, `count`; areas without a row have none."""
    return (
        alt.Chart(_GEOMETRY)
        .transform_calculate(name="datum.properties.name")
        .transform_lookup("name", from_=alt.LookupData(counts, key=name, fields=[count]), default="0")
        .mark_geoshape(**_BORDERS)
        .encode(
            color=alt.Color(f"{count}:Q", title=count_title, scale=alt.Scale(domain=[0, largest]), legend=_LEGEND),
            tooltip=[alt.Tooltip("name:N", title=name), alt.Tooltip(f"{count}:Q", title=count_title, format=",")],
        )
    )


def _circles(count: str, largest: int, tooltip: list[alt.Tooltip], picked: str) -> alt.Chart:
    size = alt.Size(f"{count}:Q", scale=alt.Scale(domain=[0, largest], range=[20, 900]), legend=None)
    mark = alt.Chart(_COUNTS).mark_circle(opacity=0.75, cursor="pointer")
    return mark.encode(longitude="longitude:Q", latitude="latitude:Q", size=size, tooltip=tooltip).add_params(picking(picked))


def _smallest_last(counts: pd.DataFrame, count: str) -> pd.DataFrame:
    """Small circles are drawn over large ones."""
    return counts.sort_values(count, ascending=False)


def _spec(chart: Chart, file_name: str, counts: pd.DataFrame) -> Spec:
    spec: Spec = chart.properties(height=_HEIGHT).configure_view(stroke=None).to_dict(validate=False)
    # Put in afterwards, because Altair would check each coordinate: 400 ms a map.
    return spec | {"datasets": {_GEOMETRY.name: _areas(file_name), _COUNTS.name: counts}}


@cache
def _areas(file_name: str) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = json.loads(data_file(f"geometry/{file_name}").read_text())["features"]
    return features


@cache
def _places() -> pd.DataFrame:
    return pd.read_csv(data_file("geometry/zip_codes.csv.gz"), dtype={"zip_code": str}, keep_default_na=False)


@cache
def _zone_places() -> pd.DataFrame:
    return pd.read_csv(data_file("geometry/taxi_zones.csv"))
