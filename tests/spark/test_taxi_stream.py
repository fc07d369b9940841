"""The taxi query as a stream: hours and slides, what counts once, and what cannot carry the watermark away."""

import pytest
from streaming import Record, at

from infrastructure.settings import Settings
from pipeline.domains import taxi


def trip(dropoff, *, timestamp="12:00", **fields):
    value = {"lpep_dropoff_datetime": round(at(dropoff).timestamp() * 1000), "PULocationID": 74, "fare_amount": 10.0, **fields}
    return Record(value, timestamp=at(timestamp))


def hours(rows):
    return {row["window"]["start"][11:16]: row["trips"] for row in rows}


@pytest.fixture
def borough_stats(stream):
    """The stream of the query that these settings make."""

    def make(settings):
        by_name = {query.name: query for query in taxi.queries(settings)}
        return stream(by_name["taxi-borough-stats"], settings=settings)

    return make


def test_a_batch_updates_sums_and_counts_of_its_hours(borough_stats):
    _, second = borough_stats(Settings()).run([trip("10:10", fare_amount=0.1)], [trip("10:20", fare_amount=0.2)])
    (row,) = second.rows
    assert (row["borough"], row["trips"], row["fare_amount_sum"], row["fare_amount_avg"]) == ("Manhattan", 2, 0.3, 0.15)


def test_boroughs_of_the_same_hour_have_rows_of_their_own(borough_stats):
    counting = borough_stats(Settings())
    counting.run([trip("10:10", passenger_count=None), trip("10:10", PULocationID=7)], [trip("10:20")])
    assert {row["borough"]: row["trips"] for row in counting.table} == {"Manhattan": 2, "Queens": 1}


def test_a_trip_counts_until_the_watermark_reaches_its_drop_off(borough_stats):
    _, second = borough_stats(Settings(watermark="10 minutes")).run([trip("10:30")], [trip("10:20:01"), trip("10:20", fare_amount=1)])
    assert (second.dropped, hours(second.rows)) == (1, {"10:00": 2})


def test_the_same_trip_byte_for_byte_counts_once_whatever_batch_it_comes_in(borough_stats):
    _, second = borough_stats(Settings()).run([trip("10:10")], [trip("10:10"), trip("10:10", fare_amount=11.0)])
    assert hours(second.rows) == {"10:00": 2}


def test_a_trip_from_the_future_does_not_make_the_others_late(borough_stats):
    first, second = borough_stats(Settings(watermark="10 minutes")).run([trip("10:00"), trip("12:11")], [trip("10:01")])
    assert first.watermark == at("09:50")
    assert (second.dropped, hours(second.rows)) == (0, {"10:00": 2})


def test_a_flow_counts_the_trips_from_a_borough_to_another_once(stream):
    (flows,) = (query for query in taxi.queries(Settings()) if query.name == "taxi-flows")
    counting = stream(flows)
    home, away = trip("10:10", DOLocationID=74), trip("10:20", DOLocationID=7)
    counting.run([home, away], [away, trip("10:30", DOLocationID=7), trip("11:00", DOLocationID=7), trip("11:10", DOLocationID=9999)])
    assert {(row["pickup_borough"], row["dropoff_borough"], row["window"]["start"][11:16]): row["trips"] for row in counting.table} == {
        ("Manhattan", "Manhattan", "10:00"): 1,
        ("Manhattan", "Queens", "10:00"): 2,
        ("Manhattan", "Queens", "11:00"): 1,
        ("Manhattan", "Unknown", "11:00"): 1,
    }


def test_the_setting_of_the_slide_reaches_the_query(borough_stats, settings_of):
    (only,) = borough_stats(settings_of(STREAMGAUGE_TAXI_SLIDE="15 minutes")).run([trip("10:50")])
    assert hours(only.rows) == {"10:00": 1, "10:15": 1, "10:30": 1, "10:45": 1}


def test_the_settings_of_window_and_slide_reach_the_query(borough_stats, settings_of):
    (only,) = borough_stats(settings_of(STREAMGAUGE_TAXI_WINDOW="30 minutes", STREAMGAUGE_TAXI_SLIDE="15 minutes")).run([trip("10:50")])
    assert hours(only.rows) == {"10:30": 1, "10:45": 1}


@pytest.mark.parametrize("name", ["taxi-borough-stats", "taxi-flows"])
def test_windows_without_a_slide_do_not_overlap(stream, settings_of, name):
    settings = settings_of(STREAMGAUGE_TAXI_WINDOW="20 minutes")
    (query,) = (query for query in taxi.queries(settings) if query.name == name)
    (only,) = stream(query, settings=settings).run([trip("10:39:59"), trip("10:40")])
    assert hours(only.rows) == {"10:20": 1, "10:40": 1}


def test_the_setting_of_what_is_the_future_reaches_the_query(borough_stats, settings_of):
    (only,) = borough_stats(settings_of(STREAMGAUGE_FUTURE="20 minutes")).run([trip("12:20"), trip("12:20:01")])
    assert hours(only.rows) == {"12:00": 1}
