"""The maps: rows in, what is drawn out; and the files that they draw."""

import gzip
from itertools import pairwise

import pandas as pd

from dashboard import maps
from infrastructure.storage.data_files import data_file


def test_maps_of_other_trips_differ_in_nothing_but_their_rows():
    first, second = (maps.boroughs(pd.DataFrame({"borough": [borough], "trips": [7]}), largest=9) for borough in ("Queens", "Bronx"))
    rows = [drawn["datasets"].pop("counts") for drawn in (first, second)]
    assert [list(row["borough"]) for row in rows] == [["Queens"], ["Bronx"]]
    assert first == second, "the browser draws the areas once"


def test_a_zip_code_is_put_where_it_is_and_one_without_a_place_is_left_out():
    found = maps.located(pd.DataFrame({"zip_code": ["02139", "10025", "unknown"], "count": [3, 7, 9]}))
    places = [
        (row["zip_code"], row["count"], round(row["latitude"]), round(row["longitude"]), row["state"]) for row in found.to_dict("records")
    ]
    assert places == [("02139", 3, 42, -71, "Massachusetts"), ("10025", 7, 41, -74, "New York")]


def test_small_circles_are_drawn_over_large_ones():
    counts = maps.located(pd.DataFrame({"zip_code": ["02139", "10025"], "count": [3, 7]}))
    drawn = maps.zip_codes(counts, pd.DataFrame({"state": [], "count": []}), count_title="people seen", largest=7, largest_state=7)
    assert list(drawn["datasets"]["counts"]["count"]) == [7, 3]


def test_every_state_of_a_zip_code_is_on_the_map():
    drawn = {area["properties"]["name"] for area in maps._areas("us_states.json")}
    assert set(maps._places()["state"]) - {""} == drawn


def test_every_zip_code_of_the_demo_has_a_place():
    zip_codes = pd.read_csv(data_file("device_locations.csv"), dtype=str)["zip_code"].unique()
    assert len(maps.located(pd.DataFrame({"zip_code": zip_codes, "count": 1}))) == len(zip_codes)


def test_the_files_are_small_and_their_origin_is_told():
    files = [path for path in data_file("geometry").iterdir() if path.suffix in {".json", ".gz", ".csv"}]
    assert len(files) == 4
    assert [path.name for path in files if path.stat().st_size > 500_000] == []
    told = data_file("geometry/README.md").read_text()
    assert [path.name for path in files if path.name not in told] == []
    assert gzip.decompress(data_file("geometry/zip_codes.csv.gz").read_bytes()).startswith(b"zip_code,latitude,longitude,state\n")


def test_rings_run_clockwise_or_vega_would_fill_the_rest_of_the_world():
    for name in ("nyc_boroughs.json", "us_states.json"):
        for area in maps._areas(name):
            for outline, *_ in area["geometry"]["coordinates"]:
                turned = sum((x2 - x1) * (y2 + y1) for (x1, y1), (x2, y2) in pairwise(outline))
                assert turned > 0, f"{area['properties']['name']} in {name}"


def test_every_taxi_zone_has_a_place_in_its_borough():
    zones = pd.read_csv(data_file("taxi_zone_lookup.csv")).rename(columns={"LocationID": "zone_id", "Borough": "borough"})
    known = zones[~zones["borough"].isin({"Unknown", "N/A"}) & zones["borough"].notna()].assign(trips=1)
    placed = maps.located_zones(known)
    outlines = {area["properties"]["name"]: area["geometry"]["coordinates"] for area in maps._areas("nyc_boroughs.json")}
    outside = {
        row["zone_id"]
        for row in placed.to_dict("records")
        if not any(is_inside(row["longitude"], row["latitude"], ring) for ring, *_ in outlines.get(row["borough"], []))
    }
    assert set(known["zone_id"]) == set(placed["zone_id"])
    elsewhere = {1, 46, 103, 104, 153, 202}  # Newark Airport, islands too small for the outlines, and Marble Hill, across the river
    assert outside == elsewhere


def is_inside(x, y, ring):
    """Whether a ray from the point to the east crosses the ring an odd number of times."""
    crossings = [x1 + (y - y1) / (y2 - y1) * (x2 - x1) for (x1, y1), (x2, y2) in pairwise(ring) if (y1 > y) != (y2 > y)]
    return sum(crossing > x for crossing in crossings) % 2 == 1
