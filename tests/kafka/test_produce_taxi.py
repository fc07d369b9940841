"""`streamgauge produce taxi` on a real broker: simulated and recorded trips, pacing by event time, and what is refused."""

import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from plain import read_topic, write_topic
from running import streamgauge
from tlc_file import write_parquet

from contract.domains.taxi import NYC_TAXI
from producers.taxi.simulation import Simulation
from producers.taxi.stream import event_time_ms, simulate

START = datetime(2024, 3, 1, tzinfo=UTC)
UNPACED = ("produce", "taxi", "--json", "--unpaced")


def summary_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def by_key(records):
    """The values of each key, in order."""
    values = {}
    for key, value in records:
        values.setdefault(key, []).append(value)
    return values


def received(settings):
    return by_key((message.key(), message.value()) for message in read_topic(settings, NYC_TAXI.name))


def test_what_arrives_is_what_was_simulated_in_the_order_of_each_zone(fresh):
    summary = summary_of(streamgauge(*UNPACED, "--limit", "3000", "--seed", "3", "--odd", "0.1", settings=fresh))
    assert received(fresh) == by_key((event.key, event.value) for event in simulate(Simulation(START, 3, 3000, odd_fraction=0.1)))
    assert (summary["trips"], summary["events"], summary["undelivered"]) == (3000, 3000, 0)
    assert {message.partition() for message in read_topic(fresh, NYC_TAXI.name)} == {0, 1, 2}


def test_a_file_arrives_whole_in_order_of_drop_off(fresh, tmp_path):
    simulation = Simulation(START, 5, 10_000, odd_fraction=0.1)
    write_parquet(tmp_path / "month.parquet", simulation)
    assert summary_of(streamgauge(*UNPACED, "--file", str(tmp_path / "month.parquet"), settings=fresh))["trips"] == 10_000
    zones = received(fresh)
    assert sorted(value for values in zones.values() for value in values) == sorted(event.value for event in simulate(simulation))
    for zone, values in zones.items():
        times = [event_time_ms(value) for value in values]
        assert times == sorted(times), zone


def test_the_summary_tells_what_is_in_the_topic(fresh):
    faults = ("--late", "0.05", "--too-late", "0.02", "--duplicates", "0.05", "--corrupt", "0.03")
    summary = summary_of(streamgauge(*UNPACED, "--limit", "6000", *faults, settings=fresh))
    values = [message.value() for message in read_topic(fresh, NYC_TAXI.name)]
    usable = Counter(value for value in values if event_time_ms(value) is not None)
    assert summary["events"] == len(values)
    assert summary["trips"] == summary["distinct_events"] == len(usable) == 6000
    assert summary["duplicates"] == usable.total() - len(usable) > 200
    assert summary["corrupt"] == len(values) - usable.total() > 100
    assert summary["trips_too_late"] == summary["too_late"] > 50
    assert summary["undelivered"] == 0


def test_a_simulation_goes_on_after_the_newest_trip(fresh):
    future = b'{"lpep_dropoff_datetime": 4070908800000}'
    for _ in range(2):
        summary_of(streamgauge(*UNPACED, "--continue", "--limit", "500", "--odd", "0.1", settings=fresh))
        write_topic(fresh, NYC_TAXI.name, [future])
    values = [message.value() for message in read_topic(fresh, NYC_TAXI.name)]
    times = sorted(event_time_ms(value) for value in values if value != future)
    after_2008 = [time_ms for time_ms in times if time_ms >= START.timestamp() * 1000]
    assert (len(times), len(times) - len(after_2008)) == (1000, 2)
    assert after_2008[-1] - after_2008[0] > timedelta(hours=4).total_seconds() * 1000
    assert max(b - a for a, b in pairwise(after_2008)) < 3_600_000


def test_event_time_passes_at_the_speed_that_was_asked_for(fresh):
    started = time.monotonic()
    arguments = ("produce", "taxi", "--json", "--start", "2024-03-01T12:00:00Z", "--limit", "200", "--speed-up", "1800")
    seconds = summary_of(streamgauge(*arguments, settings=fresh))["seconds"]
    events = list(simulate(Simulation(START.replace(hour=12), limit=200)))
    expected = (events[-1].event_time_ms - events[0].event_time_ms) / 1000 / 1800
    assert 2 < expected - 0.1 <= seconds <= time.monotonic() - started


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--file", "nothing.parquet"), "nothing.parquet cannot be read: "),
        (("--file", __file__), "test_produce_taxi.py cannot be read: "),
        (("--month", "March"), "Invalid value for '--month'"),
        (("--file", "a.parquet", "--month", "2024-03"), "--file and --month cannot be used together"),
        (("--rate", "5", "--unpaced"), "--rate and --unpaced cannot be used together"),
        (("--rate", "5", "--speed-up", "60"), "--speed-up and --rate cannot be used together"),
        (("--rate", "0"), "Invalid value for '--rate': Input should be greater than or equal to 0.001"),
        (("--odd", "1.5"), "Invalid value for '--odd': Input should be less than or equal to 1"),
        (("--late", "-0.1"), "Invalid value for '--late': Input should be greater than or equal to 0"),
        (("--corrupt", "nan"), "Invalid value for '--corrupt'"),
        (("--file", "a.parquet", "--odd", "0.1"), "--odd applies to simulated events only"),
        (("--limit", "-1"), "Invalid value for '--limit': Input should be greater than or equal to 0"),
        (("--seed", "-1"), "Invalid value for '--seed': Input should be greater than or equal to 0"),
        (("--start", "tomorrow"), "Invalid value for '--start'"),
    ],
)
def test_what_cannot_be_is_one_line(settings, arguments, said):
    done = streamgauge("produce", "taxi", *arguments, settings=settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
