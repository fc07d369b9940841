"""`streamgauge run taxi-borough-stats` on a real broker, against DuckDB on the trips themselves."""

import json

import duckdb
import orjson
import pytest
from plain import folded, read_topic, write_topic
from running import streamgauge

from infrastructure.storage.data_files import data_file

MEASURES = ("trip_distance", "fare_amount", "tip_amount", "total_amount")


def ok(done):
    assert done.returncode == 0, done.stderr
    return done


def expected(settings, tmp_path):
    """Every window and column, by DuckDB, from the JSON in the source topic, each distinct usable record once."""
    lines = {message.value() for message in read_topic(settings, "nyc-taxi")}
    usable = [line for line in lines if line and is_trip(line)]
    path = tmp_path / "trips.json"
    path.write_bytes(b"\n".join(usable))
    columns = {
        "lpep_dropoff_datetime": "BIGINT",
        "PULocationID": "BIGINT",
        "passenger_count": "BIGINT",
        **dict.fromkeys(MEASURES, "DECIMAL(12,2)"),
    }
    sums = ", ".join(f"sum({name}), avg({name}::double)" for name in MEASURES)
    query = f"""
        select coalesce(Borough, 'Unknown'), strftime(date_trunc('hour', epoch_ms(lpep_dropoff_datetime)), '%Y-%m-%dT%H:00:00Z'), count(*), avg(passenger_count), {sums}
        from read_json('{path}', format='newline_delimited', columns={columns})
        left join read_csv('{data_file("taxi_zone_lookup.csv")}', header=true, nullstr='') on PULocationID = LocationID group by all"""
    return {(row[0], row[1]): row[2:] for row in duckdb.sql(query).fetchall()}


def is_trip(line):
    try:
        return orjson.loads(line)["lpep_dropoff_datetime"] is not None
    except (ValueError, KeyError, TypeError):
        return False


def assert_equal(settings, tmp_path):
    want = expected(settings, tmp_path)
    got = {(row["borough"], row["window"]["start"]): row for row in folded(settings, "taxi-borough-stats").values()}
    assert set(got) == set(want)
    for key, row in got.items():
        trips, passengers, *measures = want[key]
        assert (row["trips"], row["passenger_count_avg"]) == (trips, pytest.approx(passengers) if passengers is not None else None), key
        for number, name in enumerate(MEASURES):
            total, average = measures[2 * number : 2 * number + 2]
            assert (f"{row[f'{name}_sum']:.2f}", row[f"{name}_avg"]) == (f"{total:.2f}", pytest.approx(average, abs=1e-6)), (key, name)
    return want


def test_a_simulated_month_odd_rows_included_equals_a_separate_computation(fresh, tmp_path):
    month = (
        "--limit",
        "15000",
        "--odd",
        "0.02",
        "--duplicates",
        "0.01",
        "--late",
        "0.02",
        "--corrupt",
        "0.005",
        "--start",
        "2024-03-01T00:00:00Z",
    )
    summary = json.loads(ok(streamgauge("produce", "taxi", "--unpaced", "--json", *month, settings=fresh)).stdout.splitlines()[-1])
    ok(streamgauge("run", "taxi-borough-stats", "--once", settings=fresh))
    want = assert_equal(fresh, tmp_path)
    assert sum(row[0] for row in want.values()) == summary["distinct_events"]
    assert len(read_topic(fresh, "dead-letters")) == summary["corrupt"] > 0
    boroughs = {borough for borough, _ in want}
    assert {"Unknown", "Manhattan", "Queens"} <= boroughs

    report = json.loads(ok(streamgauge("report", "taxi-borough-stats", "--format", "json", "--min-count", "2", settings=fresh)).stdout)
    assert {(row["borough"], row["window"]["start"]) for row in report} == {key for key, row in want.items() if row[0] >= 2}


def test_on_the_console_for_teaching(fresh):
    write_topic(
        fresh,
        "nyc-taxi",
        [b'{"lpep_dropoff_datetime": 1709290800000, "PULocationID": 74}', b'{"lpep_dropoff_datetime": 1709287200000, "PULocationID": 74}'],
    )
    printed = ok(streamgauge("run", "taxi-borough-stats", "--console", "--once", "--mode", "complete", settings=fresh)).stdout
    assert "taxi-borough-stats, batch 0" in printed
    assert printed.index("2024-03-01 10:00:00") < printed.index("2024-03-01 11:00:00"), "the rows should be by window"
    assert folded(fresh, "taxi-borough-stats") == {}
