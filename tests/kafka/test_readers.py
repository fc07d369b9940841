"""The recipes of docs/readers.md read what a real run has written."""

import re
import runpy
from dataclasses import replace
from datetime import UTC, date, datetime

import duckdb
import orjson
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from documents import ROOT
from plain import write_topic
from topic_reset import empty_topics
from verifying import run_once

pytestmark = pytest.mark.delta
RECIPES = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "readers.md").read_text(), re.DOTALL)
FORMATS = ("trips/*/*.parquet", "trips_delta", "trips_delta", "trips/*/*.parquet", "trips_delta", "trips", "trips_delta", "trips")


@pytest.fixture(scope="module")
def folder(settings, tmp_path_factory):
    """A folder in which `.streamgauge` has both taxi archives: of two trips on the first day, and one on the second."""
    empty_topics(settings.kafka)
    folder = tmp_path_factory.mktemp("readers")
    of_folder = replace(settings, home=folder / ".streamgauge")
    times = [datetime(2026, 1, day, hour, tzinfo=UTC) for day, hour in ((30, 10), (30, 23), (31, 1))]
    trips = [orjson.dumps({"lpep_dropoff_datetime": round(time.timestamp() * 1000), "PULocationID": 74}) for time in times]
    write_topic(of_folder, "nyc-taxi", trips, partitions=3)
    run_once(of_folder, "taxi-archive", "taxi-archive-delta")
    return folder


def rows(found):
    """The rows of a result, whatever tool it is of."""
    match found:
        case duckdb.DuckDBPyRelation():
            return found.fetchall()
        case pl.DataFrame():
            return found.rows()
        case pd.DataFrame():
            return list(found.itertuples(index=False, name=None))
        case pd.Series():
            return list(found.items())
        case pa.Table():
            return [tuple(row.values()) for row in found.to_pylist()]


def test_each_recipe_is_of_the_table_that_it_names():
    assert [re.search(r"taxi/([^'\"]+)", recipe)[1] for recipe in RECIPES] == list(FORMATS)


@pytest.mark.parametrize("number", range(len(FORMATS)))
def test_a_recipe_gives_the_trips_of_each_day(folder, monkeypatch, number):
    monkeypatch.chdir(folder)
    recipe = folder / "recipe.py"
    recipe.write_text(RECIPES[number].replace('".streamgauge', f'"{folder}/.streamgauge'))  # Spark's JVM runs in another folder
    found = rows(runpy.run_path(str(recipe))["days"])
    days = [(day if isinstance(day, date) else date.fromisoformat(str(day)), trips) for day, trips in found]
    assert days == [(date(2026, 1, 30), 2), (date(2026, 1, 31), 1)]
