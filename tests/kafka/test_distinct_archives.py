"""The archives with each event once, against the dashboard's tables: the statements of docs/lake.md on a real broker."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import orjson
import pytest
from plain import one_camera, write_topic
from running import succeed
from verifying import run_once, verified

DIFFERENCES, TRIPS_IN_FILES, SIGHTINGS_IN_FILES = re.findall(
    r"```sql\n(.*?)```", (Path(__file__).parents[2] / "docs" / "lake.md").read_text(), re.DOTALL
)[:3]
MANHATTAN, NOWHERE = 74, 9999


def at(time):
    return datetime.fromisoformat(f"2026-01-01T{time}:00").replace(tzinfo=UTC)


def trip(dropoff, zone=MANHATTAN, dollars=10.25):
    return orjson.dumps({"lpep_dropoff_datetime": round(at(dropoff).timestamp() * 1000), "PULocationID": zone, "total_amount": dollars})


def ask(settings, sql):
    return json.loads(succeed("query", sql, "--format", "json", settings=settings).stdout)


def in_files(settings, sql):
    return duckdb.sql(sql.replace("'lake/", f"'{settings.lake}/"))


def test_archive_and_dashboard_differ_by_the_trips_that_came_too_late_and_by_none_that_came_twice(fresh):
    both = ("taxi-borough-stats", "taxi-archive")
    noon = [trip("12:00", zone=number) for number in (1, 2, 3)]  # on each of the three partitions
    write_topic(fresh, "nyc-taxi", [trip("10:10"), trip("10:20"), trip("10:10"), *noon], partitions=3)
    run_once(fresh, *both)
    assert ask(fresh, DIFFERENCES) == []

    in_time = [trip("11:55"), trip("11:55", dollars=7), trip("11:55")]
    too_late = [trip("10:30", dollars=0.4), trip("10:30", dollars=0.4), trip("10:30", zone=NOWHERE)]
    counted_long_ago = [trip("10:10")]
    write_topic(fresh, "nyc-taxi", [*in_time, *too_late, *counted_long_ago], partitions=3)
    run_once(fresh, *both)
    ten = {"hour": "2026-01-01T10:00:00Z", "not_counted": 1}
    assert ask(fresh, DIFFERENCES) == [
        {**ten, "borough": "Manhattan", "archived": 3, "dashboard": 2, "dollars": 20.9, "dashboard_dollars": 20.5},
        {**ten, "borough": "Unknown", "archived": 1, "dashboard": None, "dollars": 10.25, "dashboard_dollars": None},
    ]
    stats = verified(fresh, "taxi-borough-stats")
    assert (stats.verdict, stats.lateness.late_events) == ("right", 2)

    assert len(ask(fresh, "select * from taxi_trips")) == 13
    (held,) = ask(fresh, "select count(*) as trips, sum(total_amount) as dollars from taxi_trips_distinct")
    assert held == {"trips": 9, "dollars": 79.15}
    assert in_files(fresh, TRIPS_IN_FILES).aggregate("count(*), sum(total_amount)").fetchall() == [(9, Decimal("79.15"))]


@pytest.mark.delta
def test_sightings_are_those_of_the_dashboard(fresh):
    twice = one_camera("cam-1", at("10:10"))
    write_topic(fresh, "nest-logs", [twice, twice, one_camera("cam-1", at("10:11")), one_camera("cam-2", at("11:00")), twice], partitions=3)
    run_once(fresh, "nest-camera-stats", "nest-archive", "nest-archive-delta")
    by_hour = "select date_trunc('hour', last_event.start_time) as hour, count(*) as people from {} group by all order by all"
    expected = ask(fresh, "select window.start as hour, sum(count) as people from live_nest_camera_stats group by all order by all")
    assert [row["people"] for row in expected] == [2, 1]
    assert ask(fresh, by_hour.format("nest_cameras_distinct")) == expected
    assert ask(fresh, by_hour.format("nest_cameras_delta_distinct")) == expected
    assert in_files(fresh, SIGHTINGS_IN_FILES).aggregate("count(*)").fetchall() == [(3,)]

    tables = {row["table"]: row for row in json.loads(succeed("query", "--format", "json", settings=fresh).stdout)}
    assert (tables["nest_cameras"]["format"], tables["nest_cameras"]["path"]) == (
        "parquet",
        str(fresh.lake.absolute() / "nest" / "cameras"),
    )
    assert "offset bigint" in tables["nest_cameras"]["columns"]
    assert tables["nest_cameras_distinct"] == {**tables["nest_cameras"], "table": "nest_cameras_distinct", "format": "view"}
