"""The taxi transforms on static frames: boroughs, hours, money to the cent, and what lands in the dead letters."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from letters import reasons
from messages import refused

from infrastructure.settings import Settings
from pipeline.domains.taxi import ZONES, borough_stats, trips, unusable, with_zones

RECEIVED = datetime(2026, 1, 1, 12, tzinfo=UTC)
"""The timestamp of the records that the fixture makes."""
YEAR_10000_MS = 253_402_300_800_000


def milliseconds(text):
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def trip(dropoff="2024-03-01T10:30:00Z", **fields):
    values = {
        "lpep_pickup_datetime": milliseconds("2024-03-01T10:00:00Z"),
        "lpep_dropoff_datetime": milliseconds(dropoff),
        "PULocationID": 74,
        "DOLocationID": 75,
    }
    return json.dumps(
        {**values, "passenger_count": 1, "trip_distance": 1.5, "fare_amount": 10.1, "tip_amount": 0.2, "total_amount": 12.3, **fields}
    ).encode()


def stats(spark, records, *values, slide="1 hour"):
    rows = borough_stats(trips(records(*values, topic="nyc-taxi"), "1 hour"), ZONES.load(spark, Settings()), slide=slide).collect()
    return sorted((row.asDict(recursive=True) for row in rows), key=lambda row: (str(row["window"]["start"]), row["borough"]))


def reasons_of(records, *values):
    return reasons(unusable(records(*values, topic="nyc-taxi"), "1 hour"))


def test_sums_are_exact_to_the_cent_and_averages_skip_nulls(spark, records):
    values = [trip(fare_amount=0.1, total_amount=number / 100, passenger_count=count) for number, count in enumerate((None, 1, 2))]
    (row,) = stats(spark, records, *values)
    assert (row["borough"], row["trips"], row["passenger_count_avg"]) == ("Manhattan", 3, 1.5)
    assert row["fare_amount_sum"] == Decimal("0.30"), "0.1 three times is 0.30000000000000004 in floating point"
    assert row["fare_amount_avg"] == Decimal("0.100000")


def test_a_zone_that_is_not_in_the_table_counts_as_unknown_and_tlcs_own_names_stay(spark, records):
    values = [trip(PULocationID=zone, tip_amount=number) for number, zone in enumerate((9999, None, 264, 265))]
    assert {row["borough"]: row["trips"] for row in stats(spark, records, *values)} == {"Unknown": 3, "N/A": 1}


def test_a_trip_counts_in_the_hour_of_its_drop_off(spark, records):
    values = [trip("2024-03-01T10:59:59.999Z"), trip("2024-03-01T11:00:00Z")]
    assert [row["trips"] for row in stats(spark, records, *values)] == [1, 1]


def test_a_slide_of_half_an_hour_counts_each_trip_twice(spark, records):
    assert [row["trips"] for row in stats(spark, records, trip(), slide="30 minutes")] == [1, 1]


def test_the_same_record_twice_is_one_trip(spark, records):
    assert [row["trips"] for row in stats(spark, records, trip(), trip(), trip(tip_amount=1))] == [2]


def test_the_hour_is_the_one_on_the_clock_in_new_york_also_when_clocks_change(records):
    begins, ends = trip("2024-03-10T03:30:00Z"), trip("2024-11-03T01:30:00Z")
    hours = trips(records(begins, ends), "1 hour").selectExpr("string(dropoff) AS dropoff").collect()
    assert [row.dropoff for row in hours] == ["2024-03-10 03:30:00", "2024-11-03 01:30:00"]


def test_odd_trips_count(spark, records):
    values = [
        trip("1970-01-01T00:00:00Z"),
        trip("2008-12-31T23:59:00Z"),
        trip(total_amount=-5.5, fare_amount=-5),
        trip(trip_distance=125112.2, tip_amount=None),
    ]
    rows = stats(spark, records, *values)
    assert [row["trips"] for row in rows] == [1, 1, 2]
    assert rows[2]["total_amount_sum"] == Decimal("6.80")


def test_a_drop_off_in_the_future_of_its_record_is_no_trip(records):
    at_the_bound = RECEIVED + timedelta(hours=1)
    values = [trip(time.isoformat()) for time in (at_the_bound, at_the_bound + timedelta(milliseconds=1))]
    assert [row.offset for row in trips(records(*values), "1 hour").collect()] == [0]
    assert reasons_of(records, *values) == {1: "lpep_dropoff_datetime is in the future"}


def test_what_cannot_be_used_has_a_reason(records):
    expected = [
        (None, "empty"),
        (b"", "empty"),
        (b"1,2,3", "not JSON"),
        (trip()[:-5], "not JSON"),
        (b"\xff" + trip(), "not UTF-8"),
        (b"{}", "no lpep_dropoff_datetime"),
        (b"[]", "no lpep_dropoff_datetime"),
        (trip(lpep_dropoff_datetime=None), "no lpep_dropoff_datetime"),
        (trip(lpep_dropoff_datetime=-1), "lpep_dropoff_datetime is before 1970"),
        (trip(lpep_dropoff_datetime=2**62), "lpep_dropoff_datetime is in the future"),
        (trip(lpep_dropoff_datetime="2024-03-01"), "lpep_dropoff_datetime is not a number that bigint holds"),
        (trip(lpep_dropoff_datetime=1.5), "lpep_dropoff_datetime is not a number that bigint holds"),
        (trip() + trip(), "more than one JSON value, or other text after the first"),
        (trip(fare_amount="much"), "fare_amount is not a number that decimal(12,2) holds; the rest was used"),
        (trip(fare_amount=10.125), "fare_amount is not a number that decimal(12,2) holds; the rest was used"),
        (trip(fare_amount=10**10), "fare_amount is not a number that decimal(12,2) holds; the rest was used"),
        (trip(passenger_count=1.5), "passenger_count is not a number that bigint holds; the rest was used"),
        (trip(passenger_count=2**63), "passenger_count is not a number that bigint holds; the rest was used"),
        (trip(lpep_pickup_datetime=YEAR_10000_MS), "lpep_pickup_datetime is not of the years 1970 to 9999; the rest was used"),
        (trip(lpep_pickup_datetime=2**62), "lpep_pickup_datetime is not of the years 1970 to 9999; the rest was used"),
        (
            trip(fare_amount=0).replace(b'"fare_amount": 0', b'"fare_amount": 1e99999999'),
            "fare_amount is not a number that decimal(12,2) holds; the rest was used",
        ),
        (trip(a=1).replace(b'"a": 1', b'"a": 1, "a": 2'), "a name is there twice in an object"),
    ]
    found = reasons_of(records, *(value for value, _ in expected))
    assert [(value, found.get(offset)) for offset, (value, _) in enumerate(expected)] == expected


def test_a_number_is_kept_exactly_or_is_null(records):
    amounts = {
        "10": "10.00",
        "10.1": "10.10",
        "-0.05": "-0.05",
        "10.100": "10.10",
        "9999999999.99": "9999999999.99",
        "10.125": None,
        "10.1000000000000000000000001": None,
        "10.1" + "0" * 35: "10.10",
        "10.1" + "0" * 36: None,
        "10.1" + "0" * 40 + "1": None,
        "1e1": "10.00",
        "1.05E+2": "105.00",
        "-500e-2": "-5.00",
        "0E-8": "0.00",
        "1234567890.12000e0": "1234567890.12",
        "1e+002": "100.00",
        "123456789012345e-13": None,
        "10000000000.0000000001e0": None,
        "1e-400": None,
        "1e400": None,
        "1e10": None,
        "1e99999999": None,
        "1e-99999999": None,
        "10000000000": None,
        '"10.1"': None,
        "true": None,
        "null": None,
    }
    frame = trips(
        records(*(trip(fare_amount=7).replace(b'"fare_amount": 7', b'"fare_amount": ' + text.encode()) for text in amounts)), "1 hour"
    )
    found = dict(zip(amounts, (row.amount for row in frame.selectExpr("string(fare_amount) AS amount").collect()), strict=True))
    assert found == amounts


def test_a_pick_up_may_be_of_any_millisecond_from_1970_to_9999(records):
    values = [trip(lpep_pickup_datetime=at_ms) for at_ms in (0, YEAR_10000_MS - 1)]
    pickups = [row.ms for row in trips(records(*values), "1 hour").selectExpr("unix_millis(pickup) AS ms").collect()]
    assert (pickups, reasons_of(records, *values)) == ([0, YEAR_10000_MS - 1], {})


def test_a_whole_number_with_an_exponent_is_kept_exactly_or_is_null(records):
    counts = {
        "1e2": 100,
        "1.5e1": 15,
        "-9e18": -(9 * 10**18),
        "1.23456789012345e18": 1_234_567_890_123_450_000,
        "9007199254740993e0": None,
        "1.5e0": None,
        "1e19": None,
    }
    values = (trip(passenger_count=7).replace(b'"passenger_count": 7', b'"passenger_count": ' + text.encode()) for text in counts)
    found = [row.passenger_count for row in trips(records(*values), "1 hour").orderBy("offset").collect()]
    assert dict(zip(counts, found, strict=True)) == counts


def test_trips_as_pandas_writes_them_have_whole_numbers(spark, records):
    value = trip(passenger_count=2.0, payment_type=1.0, RatecodeID=1.0, ehail_fee=None)
    assert b'"passenger_count": 2.0' in value
    (row,) = trips(records(value), "1 hour").collect()
    assert (row.passenger_count, row.payment_type, row.RatecodeID) == (2, 1, 1)
    assert [row["passenger_count_avg"] for row in stats(spark, records, value)] == [2.0]
    assert reasons_of(records, value) == {}


def test_the_average_does_not_depend_on_the_order_of_trips(spark, records):
    counts = [2**53, 1, 1, 1]
    found = [
        stats(spark, records, *(trip(passenger_count=count, extra=number) for number, count in enumerate(order)))
        for order in (counts, counts[::-1])
    ]
    assert [row["passenger_count_avg"] for rows in found for row in rows] == [(2**53 + 3) / 4] * 2


def test_a_pick_up_time_that_is_no_time_does_not_stop_the_query(records):
    assert [row.pickup for row in trips(records(trip(lpep_pickup_datetime=2**62)), "1 hour").collect()] == [None]


def test_the_archive_names_both_ends(spark, records):
    row = with_zones(trips(records(trip(DOLocationID=1)), "1 hour"), ZONES.load(spark, Settings())).collect()[0]
    assert (row.PUBorough, row.PUZone, row.DOBorough, row.DOZone, str(row.date)) == (
        "Manhattan",
        "East Harlem North",
        "EWR",
        "Newark Airport",
        "2024-03-01",
    )


def test_a_trip_is_archived_by_the_day_of_its_drop_off_also_in_an_unknown_zone(spark, records):
    value = trip("2024-03-02T00:10:00Z", lpep_pickup_datetime=milliseconds("2024-03-01T23:50:00Z"), DOLocationID=9999)
    (row,) = with_zones(trips(records(value), "1 hour"), ZONES.load(spark, Settings())).collect()
    assert (str(row.date), row.PUBorough, row.DOBorough) == ("2024-03-02", "Manhattan", None)


@pytest.mark.parametrize("number", ["4294967297", "99999999999999999999", "-2147483649", "1.5", "JFK", ""])
def test_a_zone_whose_number_is_no_int_is_refused_and_not_cut_to_one(spark, tmp_path, number):
    (tmp_path / "zones.csv").write_text(f"LocationID,Borough,Zone\n{number},Queens,Airport\n")
    with refused("static table taxi_zone_lookup cannot be read", "expected CSV with the columns LocationID int"):
        ZONES.load(spark, Settings(static_tables=f"taxi_zone_lookup={tmp_path}/zones.csv"))


def test_the_zone_table_is_tlcs():
    import csv

    from infrastructure.storage.data_files import data_file

    with data_file("taxi_zone_lookup.csv").open() as file:
        zones = {int(row["LocationID"]): row for row in csv.DictReader(file)}
    assert sorted(zones) == list(range(1, 266))
    assert {row["Borough"] for row in zones.values()} == {
        "Manhattan",
        "Brooklyn",
        "Queens",
        "Bronx",
        "Staten Island",
        "EWR",
        "Unknown",
        "N/A",
    }
