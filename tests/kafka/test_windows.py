"""Windows of other lengths than an hour, on a real broker: what queries write, and what `verify` and `report` make of it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from plain import folded, one_camera, write_topic
from running import streamgauge, succeed
from verifying import differences, run_once, verified

from infrastructure.errors import StreamgaugeError

TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)
NEST, TAXI = ("nest-camera-stats", "nest-crowds", "nest-temperatures"), ("taxi-borough-stats", "taxi-flows")


def at(minutes):
    return TEN + timedelta(minutes=minutes)


def thermostat(minutes, celsius):
    value = {"structure_id": "s1", "last_connection": f"{at(minutes):%Y-%m-%dT%H:%M:%SZ}", "ambient_temperature_c": celsius}
    return orjson.dumps({"devices": {"thermostats": {"t1": value}}})


def trip(minutes):
    return orjson.dumps({"lpep_dropoff_datetime": round(at(minutes).timestamp() * 1000), "PULocationID": 74, "DOLocationID": 7})


def table(settings, query, *columns):
    """The columns of each row, after start and end of its window, in order."""
    rows = folded(settings, query).values()
    return sorted((row["window"]["start"][11:16], row["window"]["end"][11:16], *(row[name] for name in columns)) for row in rows)


@pytest.fixture
def counted(fresh):
    """Minutes of sightings, readings and trips, counted in windows of other lengths; one that slides."""
    documents = [one_camera("cam-1", at(minutes)) for minutes in (1, 14, 15, 29, 45)]
    write_topic(fresh, "nest-logs", [*documents, thermostat(3, 19.5), thermostat(14, 20), thermostat(31, 22)], partitions=1)
    write_topic(fresh, "nyc-taxi", map(trip, (5, 39, 41)), partitions=1)
    settings = replace(fresh, nest_window="15 minutes", taxi_window="40 minutes", taxi_slide="20 minutes", crowd=2)
    run_once(settings, *NEST, *TAXI)
    return settings


def test_rows_are_of_windows_of_the_set_lengths_and_verify_proves_them(counted):
    of_people = [("10:00", "10:15", 2), ("10:15", "10:30", 2), ("10:45", "11:00", 1)]
    assert table(counted, "nest-camera-stats", "count") == of_people
    assert table(counted, "nest-crowds", "crowd") == [(*window, 2) for *window, _ in of_people[:2]]
    assert table(counted, "nest-temperatures", "readings", "ambient_temperature_c_max") == [
        ("10:00", "10:15", 2, 20),
        ("10:30", "10:45", 1, 22),
    ]
    starts = ("09:40", "10:20", 1), ("10:00", "10:40", 2), ("10:20", "11:00", 2), ("10:40", "11:20", 1)
    assert table(counted, "taxi-borough-stats", "trips") == [*starts]
    assert table(counted, "taxi-flows", "trips") == [("10:00", "10:40", 2), ("10:40", "11:20", 1)], "these never overlap"

    found = verified(counted, *NEST, *TAXI)
    assert {name: found[name].verdict for name in (*NEST, *TAXI)} == dict.fromkeys((*NEST, *TAXI), "right"), found
    assert found["taxi-borough-stats"].rows.equal == len(starts)

    report = succeed("report", "nest-camera-stats", "--format", "json", settings=counted)
    assert [row["window"]["end"][11:16] for row in json.loads(report.stdout)] == ["10:15", "10:30", "11:00"]
    reasons = succeed("why", "taxi-borough-stats", "Manhattan", "2026-01-01T10:20", "--format", "json", settings=counted)
    assert [one["event_time"][11:16] for one in json.loads(reasons.stdout)["counted"]["first"]] == ["10:39", "10:41"]


def test_a_query_with_rows_of_another_length_is_recounted_after_a_reset_alone(counted):
    changed = replace(counted, nest_window="1 hour")
    refused = streamgauge("run", "nest-camera-stats", "--once", settings=changed)
    assert refused.returncode == StreamgaugeError.exit_code
    assert "nest-camera-stats has counted with window '15 minutes' and is now to count with window '1 hour'" in refused.stderr
    succeed("reset", "nest-camera-stats", "--yes", settings=changed)
    run_once(changed, "nest-camera-stats")
    assert table(changed, "nest-camera-stats", "count") == [("10:00", "11:00", 5)]


def test_verify_with_another_length_finds_each_row_wrong(counted):
    outcome = verified(replace(counted, nest_window="1 hour"), "nest-camera-stats")
    assert outcome.verdict == "wrong"
    assert len(differences(outcome, "missing")) == 1
