"""Maps that need no tile server: areas and points of data/geometry, drawn by Vega-Lite."""

import json
from functools import cache
from typing import Any

import altair as alt
import pandas as pd

from contract.storage.data_files import data_file
from dashboard.charts import Chart, Spec, picking

_HEIGHT = 330
_GEOMETRY, _COUNTS = alt.NamedData("geometry"), alt.NamedData("counts")


def boroughs(trips: pd.DataFrame, *, largest: int) -> Spec:
    """New York's boroughs, the darker the more trips. trips: columns borough, trips. Boroughs that have none are the palest.

    largest: the number of trips that is darkest, so that the maps of several hours can be compared.
    """
    tooltip = [alt.Tooltip("name:N", title="borough"), alt.Tooltip("trips:Q", title="trips", format=",")]
    colour = alt.Color("trips:Q", title="trips", scale=alt.Scale(domain=[0, largest]), legend=alt.Legend(format=",d"))
    shapes = (
        alt.Chart(_GEOMETRY)
        .transform_calculate(name="datum.properties.name")
        .transform_lookup("name", from_=alt.LookupData(_COUNTS, key="borough", fields=["trips"]), default="0")
        .mark_geoshape(cursor="pointer", stroke="#7f8c9d", strokeWidth=0.8)
        .encode(color=colour, tooltip=tooltip)
        .add_params(picking("name"))
        .project("mercator")
    )
    return _spec(shapes, "nyc_boroughs.json", trips[["borough", "trips"]])


def zip_codes(counts: pd.DataFrame, *, count_title: str, largest: int) -> Spec:
    """The United States with a circle at each zip code, its area by the count. counts: see `located`. largest: the count of the largest circle."""
    tooltip = [alt.Tooltip("zip_code:N", title="zip code"), alt.Tooltip("count:Q", title=count_title, format=",")]
    circles = _circles("count", largest, tooltip, "zip_code")
    return _spec(alt.layer(_land(), circles).project("albersUsa"), "us_states.json", counts)


def located(counts: pd.DataFrame) -> pd.DataFrame:
    """The rows of `counts` (zip_code, count) whose zip code has a place on the map, with latitude and longitude; smaller counts last."""
    return counts.merge(_places(), on="zip_code").sort_values("count", ascending=False)


def zones(trips: pd.DataFrame, *, largest: int) -> Spec:
    """New York with a circle at each taxi zone, its area by the trips. trips: see `located_zones`. largest: the trips of the largest circle."""
    tooltip = [alt.Tooltip("zone:N"), alt.Tooltip("borough:N"), alt.Tooltip("trips:Q", format=",")]
    circles = _circles("trips", largest, tooltip, "borough")
    return _spec(alt.layer(_land(), circles).project("mercator"), "nyc_boroughs.json", trips)


def located_zones(trips: pd.DataFrame) -> pd.DataFrame:
    """The rows of `trips` (zone_id, zone, borough, trips) whose zone has a place on the map, with latitude and longitude; fewer trips last."""
    return trips.merge(_zone_places(), on="zone_id").sort_values("trips", ascending=False)


def _land() -> alt.Chart:
    return alt.Chart(_GEOMETRY).mark_geoshape(fillOpacity=0.12, aria=False)


def _circles(count: str, largest: int, tooltip: list[alt.Tooltip], picked: str) -> alt.Chart:
    size = alt.Size(f"{count}:Q", scale=alt.Scale(domain=[0, largest], range=[20, 900]), legend=None)
    mark = alt.Chart(_COUNTS).mark_circle(opacity=0.75, cursor="pointer")
    return mark.encode(longitude="longitude:Q", latitude="latitude:Q", size=size, tooltip=tooltip).add_params(picking(picked))


def _spec(chart: Chart, file_name: str, counts: pd.DataFrame) -> Spec:
    spec: Spec = chart.properties(height=_HEIGHT).configure_view(stroke=None).to_dict()
    # Put in afterwards, because Altair would check each coordinate: 400 ms a map.
    return spec | {"datasets": {_GEOMETRY.name: _areas(file_name), _COUNTS.name: counts}}


@cache
def _areas(file_name: str) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = json.loads(data_file(f"geometry/{file_name}").read_text())["features"]
    return features


@cache
def _places() -> pd.DataFrame:
    return pd.read_csv(data_file("geometry/zip_codes.csv.gz"), dtype={"zip_code": str})


@cache
def _zone_places() -> pd.DataFrame:
    return pd.read_csv(data_file("geometry/taxi_zones.csv"))
