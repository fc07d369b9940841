"""Maps that need no tile server: areas and points of data/geometry, drawn by Vega-Lite."""

import json
from functools import cache
from typing import Any

import altair as alt
import pandas as pd

from contract.storage.data_files import data_file
from dashboard.charts import Chart

Spec = dict[str, Any]
"""A chart in Vega-Lite's JSON."""
_HEIGHT = 330
_GEOMETRY = alt.NamedData("geometry")


def boroughs(trips: pd.DataFrame) -> Spec:
    """New York's boroughs, the darker the more trips. trips: columns borough, trips. Boroughs that have none are the palest."""
    count_of = dict(zip(trips["borough"], (int(count) for count in trips["trips"]), strict=True))
    areas = [
        {**area, "properties": {**area["properties"], "trips": count_of.get(area["properties"]["name"], 0)}}
        for area in _areas("nyc_boroughs.json")
    ]
    tooltip = [alt.Tooltip("properties.name:N", title="borough"), alt.Tooltip("properties.trips:Q", title="trips", format=",")]
    shapes = (
        alt.Chart(_GEOMETRY)
        .mark_geoshape()
        .encode(color=alt.Color("properties.trips:Q", title="trips", legend=alt.Legend(format=",d")), tooltip=tooltip)
        .project("mercator")
    )
    return _spec(shapes, areas)


def zip_codes(counts: pd.DataFrame, *, count_title: str) -> Spec:
    """The United States with a circle at each zip code, its area by the count. counts: see `located`."""
    land = alt.Chart(_GEOMETRY).mark_geoshape(fillOpacity=0.12, aria=False)
    circles = (
        alt.Chart(counts)
        .mark_circle(opacity=0.75)
        .encode(
            longitude="longitude:Q",
            latitude="latitude:Q",
            size=alt.Size("count:Q", scale=alt.Scale(range=[20, 900], zero=True), legend=None),
            tooltip=[alt.Tooltip("zip_code:N", title="zip code"), alt.Tooltip("count:Q", title=count_title, format=",")],
        )
    )
    return _spec(alt.layer(land, circles).project("albersUsa"), _areas("us_states.json"))


def located(counts: pd.DataFrame) -> pd.DataFrame:
    """The rows of `counts` (zip_code, count) whose zip code has a place on the map, with latitude and longitude; smaller counts last."""
    return counts.merge(_places(), on="zip_code").sort_values("count", ascending=False)


def _spec(chart: Chart, geometry: list[dict[str, Any]]) -> Spec:
    spec: Spec = chart.properties(height=_HEIGHT).configure_view(stroke=None).to_dict()
    # Put in afterwards, because Altair would check each coordinate: 400 ms a map.
    return spec | {"datasets": {**spec.get("datasets", {}), _GEOMETRY.name: geometry}}


@cache
def _areas(file_name: str) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = json.loads(data_file(f"geometry/{file_name}").read_text())["features"]
    return features


@cache
def _places() -> pd.DataFrame:
    return pd.read_csv(data_file("geometry/zip_codes.csv.gz"), dtype={"zip_code": str})
