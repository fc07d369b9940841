"""Simulated taxi trips: what they look like, how the week goes, and the odd rows of real months."""

import csv
import hashlib
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import orjson
import pyarrow.parquet as pq
import pytest
from tlc_file import write_parquet

from infrastructure.storage.data_files import data_file
from producers.delivery.events import Event
from producers.delivery.faults import Kind, Record
from producers.delivery.summary import Tally
from producers.taxi.simulation import TRIPS_PER_DAY, Simulation
from producers.taxi.stream import DAMAGES, corrupt, event_time_ms, replay, simulate, trip_counts
from producers.taxi.trips import TRIP

START = datetime(2024, 3, 1, tzinfo=UTC)
MONEY = ("fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "improvement_surcharge", "congestion_surcharge")
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def week():
    return [json.loads(event.value) for event in simulate(Simulation(START, limit=13_000))]


@pytest.fixture(scope="module")
def month():
    return [json.loads(event.value) for event in simulate(Simulation(START, limit=57_457, odd_fraction=0.06))]


def digest(simulation):
    return hashlib.sha256(b"\n".join(event.value for event in simulate(simulation))).hexdigest()


def test_the_same_simulation_gives_the_same_bytes_and_another_seed_or_start_others():
    simulation = Simulation(START, seed=7, limit=5000, odd_fraction=0.1)
    assert digest(simulation) == digest(simulation)
    assert len({digest(simulation), digest(Simulation(START, 8, 5000, 0.1)), digest(Simulation(START + timedelta(1), 7, 5000, 0.1))}) == 3


def test_a_limit_says_only_where_it_ends():
    endless = simulate(Simulation(START))
    assert list(islice(endless, 4200)) == list(simulate(Simulation(START, limit=4200)))
    assert list(simulate(Simulation(START, limit=0))) == []


def test_an_event_is_at_its_drop_off_with_the_zone_of_pick_up_as_its_key():
    (event,) = simulate(Simulation(START, limit=1))
    trip = json.loads(event.value)
    assert event == Event(trip["lpep_dropoff_datetime"], trip["lpep_dropoff_datetime"], str(trip["PULocationID"]).encode(), event.value)
    assert list(trip) == TRIP.names


def test_trips_come_in_order_of_drop_off_from_the_start_on(week):
    times = [trip["lpep_dropoff_datetime"] for trip in week]
    assert times == sorted(times)
    assert 0 <= times[0] - START.timestamp() * 1000 < 3_600_000
    assert (times[-1] - times[0]) / 1000 == pytest.approx(len(week) * 86_400 / TRIPS_PER_DAY, rel=0.1)


def test_evenings_are_busier_than_nights_and_thursdays_than_sundays(month):
    hours = Counter(trip["lpep_dropoff_datetime"] // 3_600_000 % 24 for trip in month)
    assert hours[17] > 5 * hours[4] > 0
    days = Counter(datetime.fromtimestamp(trip["lpep_dropoff_datetime"] / 1000, UTC).date() for trip in month)
    thursday, sunday = datetime(2024, 3, 7, tzinfo=UTC).date(), datetime(2024, 3, 10, tzinfo=UTC).date()
    assert days[thursday] > 1.15 * days[sunday]


def test_ordinary_trips_are_consistent(week):
    for trip in week:
        assert trip["total_amount"] == pytest.approx(sum(trip[name] for name in MONEY), abs=0.001)
        assert round(trip["total_amount"] * 100) / 100 == trip["total_amount"]
        seconds = (trip["lpep_dropoff_datetime"] - trip["lpep_pickup_datetime"]) / 1000
        assert 60 <= seconds <= 3 * 3600
        assert 0 < trip["trip_distance"] / (seconds / 3600) < 80
        assert trip["tip_amount"] == 0 or trip["payment_type"] == 1


def test_trips_begin_where_green_taxis_may_pick_up_and_pay_for_congestion_where_they_must(week):
    with data_file("taxi_zone_lookup.csv").open() as file:
        service = {int(zone["LocationID"]): zone["service_zone"] for zone in csv.DictReader(file)}
    assert {service[trip["PULocationID"]] for trip in week} == {"Boro Zone", "Yellow Zone"}
    assert sum(service[trip["PULocationID"]] == "Boro Zone" for trip in week) > 0.9 * len(week)
    assert all((trip["congestion_surcharge"] > 0) == (service[trip["DOLocationID"]] == "Yellow Zone") for trip in week)


def test_ordinary_trips_lack_nothing_but_the_fee_that_nobody_pays(week):
    assert {name for trip in week for name, value in trip.items() if value is None} == {"ehail_fee"}


def length_ms(trip):
    return trip["lpep_dropoff_datetime"] - trip["lpep_pickup_datetime"]


@pytest.mark.parametrize(
    "is_odd",
    [
        lambda trip: trip["lpep_dropoff_datetime"] < 1_300_000_000_000,
        lambda trip: trip["total_amount"] < 0,
        lambda trip: trip["trip_distance"] == 0 and length_ms(trip) == 0,
        lambda trip: DAY_MS - 60_000 <= length_ms(trip) <= DAY_MS,
        lambda trip: trip["RatecodeID"] is trip["passenger_count"] is trip["store_and_fwd_flag"] is trip["payment_type"] is None,
        lambda trip: trip["PULocationID"] == 264,
        lambda trip: trip["DOLocationID"] == 265,
        lambda trip: trip["PULocationID"] == 999,
    ],
    ids=["2008", "refund", "zero", "24 hours", "null codes", "zone 264", "zone 265", "zone in no table"],
)
def test_a_month_has_odd_rows_of_every_kind_but_few(month, is_odd):
    assert 0 < sum(map(is_odd, month)) < 0.05 * len(month)


def test_a_simulation_that_goes_on_has_odd_rows_but_none_of_2008():
    events = list(simulate(Simulation(START, limit=2000, odd_fraction=0.1, has_unset_clocks=False)))
    assert events[0].event_time_ms >= START.timestamp() * 1000
    assert any(b'"RatecodeID":null' in event.value for event in events)


def test_an_odd_month_is_in_order_too(month):
    assert len(month) == 57_457
    assert all(a["lpep_dropoff_datetime"] <= b["lpep_dropoff_datetime"] for a, b in pairwise(month))


def test_a_month_written_as_tlc_writes_it_is_far_from_in_order_and_replays_as_it_was_simulated(tmp_path):
    simulation = Simulation(START, 3, 20_000, odd_fraction=0.2)
    write_parquet(tmp_path / "month.parquet", simulation)
    dropoffs = pq.read_table(tmp_path / "month.parquet")["lpep_dropoff_datetime"].to_pylist()
    farthest, behind = dropoffs[0], 0
    for dropoff in dropoffs:
        farthest = max(farthest, dropoff)
        behind += dropoff < farthest - timedelta(minutes=10)
    assert behind > 0.5 * len(dropoffs)
    replayed = list(replay(tmp_path / "month.parquet", pytest.fail))
    assert sorted(replayed) == sorted(simulate(simulation))
    assert all(a.event_time_ms <= b.event_time_ms for a, b in pairwise(replayed))


def is_trip(value):
    try:
        return isinstance(orjson.loads(value)["lpep_dropoff_datetime"], int)
    except (ValueError, TypeError):
        return False


@pytest.mark.parametrize("number", range(2 * len(DAMAGES)))
def test_a_damaged_trip_is_none_and_has_no_time(number):
    (event,) = simulate(Simulation(START, limit=1))
    assert is_trip(event.value)
    damaged = corrupt(event.value, number)
    assert not is_trip(damaged)
    assert event_time_ms(damaged) is None


@pytest.mark.parametrize(
    ("value", "time_ms"),
    [
        (b'{"lpep_dropoff_datetime":5}', 5),
        (b'{"lpep_dropoff_datetime":"5"}', None),
        (b'{"lpep_dropoff_datetime":true}', None),
        (b"{}", None),
        (b"[1]", None),
        (b"rubbish", None),
    ],
)
def test_the_time_of_a_record(value, time_ms):
    assert event_time_ms(value) == time_ms


def test_each_trip_counts_even_two_equal_ones():
    tally, event = Tally("trips", "trips"), Event(1, 1, b"74", b"{}")
    for kind in (Kind.ON_TIME, Kind.ON_TIME, Kind.TOO_LATE, Kind.DUPLICATE, Kind.CORRUPT):
        tally.count(Record(kind, event))
    counts = trip_counts(tally.summary(1.0))
    assert {name: number for name, (number, _) in counts.items()} == {"trips": 3, "trips_too_late": 1}


def test_the_zone_table_has_every_zone_and_keeps_what_stands_for_nothing_as_text():
    with data_file("taxi_zone_lookup.csv").open() as file:
        zones = list(csv.DictReader(file))
    assert list(zones[0]) == ["LocationID", "Borough", "Zone", "service_zone"]
    assert [int(zone["LocationID"]) for zone in zones] == list(range(1, 266))
    assert [list(zone.values())[1:] for zone in zones[263:]] == [["Unknown", "N/A", "N/A"], ["N/A", "Outside of NYC", "N/A"]]
