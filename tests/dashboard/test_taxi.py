"""The taxi page, on a real broker: rows, filters, odd rows of long ago, and values that are no such rows."""

import dataclasses
import json
import os
import uuid
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest
import streamlit as st
from confluent_kafka import Producer
from pages import drawn
from running import RETRY_SECONDS
from streamlit.testing.v1 import AppTest

from contract.create_topics import create_topics
from contract.domains.taxi import TAXI_BOROUGH_STATS, TAXI_FLOWS, TAXI_ZONE_SESSIONS_EARLY
from dashboard.domains import taxi, taxi_sessions
from dashboard.periods import Period
from dashboard.reading.reader import row_decoder
from infrastructure.kafka.follower import Snapshot
from infrastructure.settings import Settings

FRIDAY = datetime(2024, 3, 8, 17, tzinfo=UTC)


def window_at(start, length=timedelta(hours=1)):
    return {"end": f"{start + length:%Y-%m-%dT%H:%M:%SZ}", "start": f"{start:%Y-%m-%dT%H:%M:%SZ}"}


def decoded(topic, value):
    return row_decoder(topic, Settings().registry)(json.dumps(value).encode())


@pytest.fixture
def write(settings, monkeypatch):
    """Writes a row, as the pipeline does, to a topic that the page reads."""
    stats, flows = (dataclasses.replace(topic, plain_name=f"{topic.name}-{uuid.uuid4()}") for topic in (TAXI_BOROUGH_STATS, TAXI_FLOWS))
    create_topics(settings.kafka, [stats, flows])
    monkeypatch.setattr(taxi, "TOPIC", stats)
    monkeypatch.setattr(taxi, "FLOWS", flows)
    monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", settings.bootstrap_servers)
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "linger.ms": 0})

    def row(borough, trips, /, start=FRIDAY, length=timedelta(hours=1), **fields):
        window = window_at(start, length)
        amounts = {
            "trip_distance_sum": 2.5 * trips,
            "fare_amount_sum": 10.0 * trips,
            "tip_amount_sum": 1.25 * trips,
            "total_amount_sum": 12.0 * trips,
        }
        averages = {name.replace("_sum", "_avg"): amount / trips for name, amount in amounts.items()}
        value = {"borough": borough, "window": window, "trips": trips, "passenger_count_avg": None, **amounts, **averages, **fields}
        producer.produce(stats.name, key=json.dumps({"borough": borough, "window": window}), value=json.dumps(value))
        assert producer.flush(RETRY_SECONDS) == 0, f"Kafka did not take a record in {RETRY_SECONDS} s"

    def flow(pickup, dropoff, trips):
        value = {"pickup_borough": pickup, "dropoff_borough": dropoff, "window": window_at(FRIDAY), "trips": trips}
        producer.produce(flows.name, key=f"{pickup} {dropoff}", value=json.dumps(value))
        assert producer.flush(RETRY_SECONDS) == 0, f"Kafka did not take a record in {RETRY_SECONDS} s"

    row.flow = flow
    yield row
    st.cache_resource.clear()


@pytest.fixture
def write_session(settings, monkeypatch):
    """Writes a session of a zone, as the pipeline does, to a topic that the page reads; without trips, a tombstone."""
    name = f"{TAXI_ZONE_SESSIONS_EARLY.name}-{uuid.uuid4()}"
    sessions = dataclasses.replace(TAXI_ZONE_SESSIONS_EARLY, plain_name=name)
    create_topics(settings.kafka, [sessions])
    monkeypatch.setattr(taxi_sessions, "TOPIC", sessions)
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "linger.ms": 0})

    def row(zone, borough, start, end, trips):
        started, ended = (f"2024-03-08T{time}:00Z" for time in (start, end))
        zone_id = {"Alhambra": 265, "Astoria": 7}[zone]
        names = {"zone_id": zone_id, "zone": zone, "borough": borough}
        value = {
            "started": started,
            **names,
            "window": {"start": started, "end": ended},
            "trips": trips,
            "fare_amount_sum": 12.5,
            "total_amount_sum": 15.0,
        }
        key = json.dumps({"started": started, "zone_id": zone_id})
        producer.produce(name, key=key, value=json.dumps(value) if trips else None)
        assert producer.flush(RETRY_SECONDS) == 0, f"Kafka did not take a record in {RETRY_SECONDS} s"

    return row


def page_with(until, shows):
    """The page, run again until `shows(page)` holds."""

    def script():
        from dashboard.domains import taxi

        taxi.page()

    page = AppTest.from_function(script, default_timeout=RETRY_SECONDS)
    return until(lambda: drawn(page), shows, "the page should show what was written")


def metrics(page):
    return {metric.label: metric.value for metric in page.metric}


def test_rows_are_added_up_and_the_time_is_that_of_new_york(write, until):
    write("Manhattan", 30)
    write("Queens", 10)
    page = page_with(until, lambda page: metrics(page).get("Trips") == "40")
    assert metrics(page) == {"Trips": "40", "Newest hour, so far": "40", "Fares": "$400", "Tips": "$50"}
    assert "Friday, 8 March 2024, 17:00\N{EN DASH}18:00" in page.caption[0].value
    assert "New York time" in page.caption[0].value
    assert not page.exception


def test_a_trip_in_windows_that_overlap_counts_once(write, until):
    write("Manhattan", 30, start=FRIDAY + timedelta(minutes=15))
    page = page_with(until, lambda page: any("1 row of windows that overlap" in caption.value for caption in page.caption))
    assert not page.metric, "the hour that holds the trips is not counted yet"
    write("Manhattan", 20)
    until(lambda: metrics(drawn(page)), lambda found: found.get("Trips") == "20", "the trips of the hour alone were to be counted")


@pytest.mark.parametrize(("length", "is_told"), [(timedelta(minutes=30), True), (timedelta(hours=2), False)])
def test_an_average_hour_is_told_only_of_windows_that_are_its_parts(write, until, length, is_told):
    four = FRIDAY.replace(hour=16)
    write("Manhattan", 30, start=four, length=length)
    write("Manhattan", 20, start=four - length, length=length)
    page = page_with(until, lambda page: metrics(page).get("Trips") == "50")
    assert metrics(page)["Newest window, so far"] == "30"
    assert ("Busiest hours" in [header.value for header in page.header]) == is_told
    assert not page.exception


def test_the_windows_of_an_hour_are_added_up_before_the_average_of_days():
    starts = [FRIDAY + timedelta(days=days, minutes=minutes) for days, minutes in ((0, 0), (0, 30), (1, 0))]
    rides = pd.DataFrame({"start": pd.to_datetime(starts), "trips": [10, 20, 50]})
    assert taxi.by_hour_of_day(rides, rides)["trips"][FRIDAY.hour] == 40


def test_an_hour_without_trips_from_a_borough_counts_in_its_average():
    starts = pd.to_datetime([FRIDAY + timedelta(days=days) for days in range(3)])
    all_boroughs = pd.DataFrame({"start": starts, "trips": [90, 90, 90]})
    staten_island = pd.DataFrame({"start": starts[:1], "trips": [6]})
    assert taxi.by_hour_of_day(staten_island, all_boroughs)["trips"][FRIDAY.hour] == 2


def test_a_borough_can_be_chosen(write, until):
    write("Manhattan", 30)
    write("Queens", 10)
    page = page_with(until, lambda page: metrics(page).get("Trips") == "40")
    page.multiselect(key="borough").set_value(["Queens"]).run()
    assert metrics(page)["Trips"] == "10"


def test_trips_from_borough_to_borough_have_a_panel_once_they_are_counted(write, until):
    def is_there(page):
        return "From borough to borough" in [header.value for header in page.header]

    write("Manhattan", 30)
    page = page_with(until, lambda page: metrics(page).get("Trips") == "30")
    assert not is_there(page)
    write.flow("Manhattan", "Queens", 20)
    until(lambda: drawn(page), is_there, "the flows should be drawn")
    assert not page.exception


def test_flows_add_up_the_hours_of_the_period_and_know_one_unknown_borough():
    values = [
        {"pickup_borough": pickup, "dropoff_borough": dropoff, "window": window_at(FRIDAY + timedelta(hours=hour)), "trips": trips}
        for pickup, dropoff, hour, trips in [
            ("Queens", "Bronx", 0, 1),
            ("Queens", "Bronx", 1, 2),
            ("N/A", "Unknown", 0, 4),
            ("Unknown", "N/A", 0, 8),
            ("Queens", "Bronx", 2, 16),
        ]
    ]
    snapshot = Snapshot("kafka", "topic", rows=tuple(decoded(TAXI_FLOWS, value) for value in values))
    period = Period(pd.Timestamp(FRIDAY), pd.Timestamp(FRIDAY + timedelta(hours=2)))

    assert taxi.flows_of(snapshot, period, ()).to_dict("index") == {
        "Unknown": {"Unknown": 12, "Bronx": 0},
        "Queens": {"Unknown": 0, "Bronx": 3},
    }
    assert list(taxi.flows_of(snapshot, period, ()).index) == ["Unknown", "Queens"], "the most trips first"
    assert taxi.flows_of(snapshot, period, ("Queens",)).to_dict("index") == {"Queens": {"Bronx": 3}}
    assert taxi.flows_of(snapshot, period, ("Bronx",)).empty


def test_odd_rows_of_long_ago_do_not_stretch_the_picture(write, until):
    write("Manhattan", 1, start=datetime(2008, 12, 31, 23, tzinfo=UTC))
    write("Manhattan", 30)
    page = page_with(until, lambda page: metrics(page).get("Trips") == "30")
    page.segmented_control(key="period").set_value("all").run()
    assert metrics(page)["Trips"] == "31"


def sessions(page):
    frames = [frame.value for frame in page.dataframe if "zone" in frame.value.columns]
    return list(frames[0][["zone", "trips", "fare_amount_sum"]].itertuples(index=False, name=None)) if frames else []


def test_sessions_are_listed_newest_first_without_those_that_are_gone_and_follow_the_borough(write, write_session, until):
    write("Manhattan", 30)
    write("Queens", 10)
    write_session("Alhambra", "Manhattan", "17:00", "17:12", 3)
    write_session("Astoria", "Queens", "17:05", "17:20", 2)
    write_session("Astoria", "Queens", "17:09", "17:14", 1)
    write_session("Astoria", "Queens", "17:09", "17:14", None)
    page = page_with(until, lambda page: len(sessions(page)) == 2)
    assert sessions(page) == [("Astoria", 2, 12.5), ("Alhambra", 3, 12.5)]
    assert "3 trips are of an unknown zone, and not on the map." in [text.value for text in page.caption]
    page.multiselect(key="borough").set_value(["Manhattan"]).run()
    assert sessions(page) == [("Alhambra", 3, 12.5)]
    assert not page.exception


@pytest.mark.usefixtures("write")
def test_an_empty_topic_says_what_to_do(until):
    page = page_with(until, lambda page: any("No events yet" in title.value for title in page.header))
    assert any("streamgauge demo" in text.value for text in page.markdown)


def test_a_value_that_is_no_such_row_is_named_and_the_others_stay(write, until):
    write("Manhattan", 30)
    write("Queens", 10, trips="many")
    page = page_with(until, lambda page: metrics(page).get("Trips") == "30" and page.expander)
    assert "1 value" in page.expander[0].label


def test_the_average_trip_is_weighted_by_trips():
    rides = pd.DataFrame([("Queens", 1, 5.0, 30.0, 3.0), ("Queens", 3, 3.0, 30.0, 0.0)], columns=["borough", "trips", *taxi.SUMS])
    (row,) = taxi.by_borough(rides).to_dict("records")
    assert row == {"borough": "Queens", "trips": 4, "fare": 15.0, "tip": 0.75, "distance": 2.0}


def test_a_session_at_an_unknown_place_is_from_the_one_unknown_borough():
    names = {"zone_id": 264, "zone": "N/A", "borough": "N/A"}
    window, amounts = window_at(FRIDAY), {"fare_amount_sum": None, "total_amount_sum": None}
    row = decoded(TAXI_ZONE_SESSIONS_EARLY, {"started": window["start"], **names, "window": window, "trips": 1, **amounts})
    period = Period(pd.Timestamp(FRIDAY), pd.Timestamp(FRIDAY + timedelta(hours=1)))
    (shown,) = taxi_sessions.chosen_of(Snapshot("kafka", "sessions", rows=(row,)), period, ()).to_dict("records")
    assert (shown["borough"], shown["zone"], shown["fare_amount_sum"]) == ("Unknown", "N/A", 0)


def test_the_map_of_zones_shows_the_sessions_that_began_in_the_hour():
    astoria = {"zone_id": 7, "zone": "Astoria", "borough": "Queens", "fare_amount_sum": 1.0}
    times = [(FRIDAY + timedelta(minutes=minutes), FRIDAY + timedelta(minutes=minutes + 20)) for minutes in (5, 50, 65)]
    rows = [{**astoria, "start": start, "end": end, "trips": trips} for (start, end), trips in zip(times, (2, 3, 4), strict=True)]
    snapshot = Snapshot("kafka", "sessions", rows=tuple(rows))
    period = Period(pd.Timestamp(FRIDAY), pd.Timestamp(FRIDAY + timedelta(hours=2)))

    def shown(hour):
        spec, elsewhere = taxi_sessions.map_of(snapshot, period, (), hour, timedelta(hours=1))
        assert elsewhere == 0
        return [(row["zone"], row["trips"]) for row in spec["datasets"]["counts"].to_dict("records")]

    assert shown(None) == [("Astoria", 9)]
    assert shown(pd.Timestamp(FRIDAY)) == [("Astoria", 5)], "a session counts in the hour of its first trip"
