"""The thermostats and smoke alarms of simulated homes."""

from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import groupby, pairwise

import orjson
import pytest

from producers.nest import homes
from producers.nest.simulation import Simulation, simulate

START = datetime(2024, 3, 1, tzinfo=UTC)
MINUTE_MS = 60_000
LASTS_MINUTES = {"smoke_alarm_state": (5, 30), "co_alarm_state": (5, 30), "battery_health": (60, 360)}


def documents_of(limit, **more):
    events = simulate(Simulation(**{"start": START, "seed": 5, "limit": limit, **more}))
    return [(event, orjson.loads(event.value)) for event in events]


@pytest.fixture(scope="module")
def a_day():
    return documents_of(14_400, seconds_between=6, cameras=100)


def devices(documents, kind):
    """(time in ms, device) of every device of the kind in every document."""
    return [(event.event_time_ms, device) for event, document in documents for device in document["devices"][kind].values()]


@pytest.fixture(scope="module")
def alarms():
    """Of each smoke alarm in 40 days: (time in ms, alarm) of every report, in order."""
    by_device = defaultdict(list)
    for time_ms, alarm in devices(documents_of(57_600, seconds_between=60, cameras=20), "smoke_co_alarms"):
        by_device[alarm["device_id"]].append((time_ms, alarm))
    return list(by_device.values())


def test_every_tenth_home_has_a_thermostat_and_a_smoke_alarm_in_all_its_documents(a_day):
    kinds = defaultdict(set)
    for event, document in a_day:
        kinds[event.key].add((*map(len, (document["devices"]["thermostats"], document["devices"]["smoke_co_alarms"])),))
    assert Counter(len(one) for one in kinds.values()) == {1: len(kinds)}, "a home has them always or never"
    assert Counter(next(iter(one)) for one in kinds.values()) == {
        (1, 1): (len(kinds) + 9) // 10,
        (0, 0): len(kinds) - (len(kinds) + 9) // 10,
    }


@pytest.mark.parametrize("kind", ["thermostats", "smoke_co_alarms"])
def test_a_device_is_of_its_home_and_was_connected_when_it_was_reported(a_day, kind):
    for event, document in a_day:
        for name, device in document["devices"][kind].items():
            assert (device["device_id"], device["structure_id"].encode()) == (name, event.key)
            assert datetime.fromisoformat(device["last_connection"]).timestamp() * 1000 == event.event_time_ms


def test_it_is_as_warm_as_in_a_home_in_both_units_and_warmer_in_the_afternoon(a_day):
    by_hour = defaultdict(list)
    for time_ms, thermostat in devices(a_day, "thermostats"):
        celsius = thermostat["ambient_temperature_c"]
        assert 15 < celsius < 25
        assert celsius * 2 == int(celsius * 2)
        assert thermostat["ambient_temperature_f"] == round(celsius * 9 / 5 + 32)
        assert thermostat["hvac_state"] == ("heating" if celsius < thermostat["target_temperature_c"] else "off")
        by_hour[time_ms // (60 * MINUTE_MS) % 24].append(celsius)
    means = {hour: sum(some) / len(some) for hour, some in by_hour.items()}
    assert means.keys() == set(range(24))
    assert means[15] > means[3] + 1.5


@pytest.mark.parametrize("field", LASTS_MINUTES)
def test_alarms_are_raised_and_end_again(alarms, field):
    shortest, longest = LASTS_MINUTES[field]
    lasted = []
    for reports in alarms:
        runs = [(state, next(some)[0]) for state, some in groupby(reports, key=lambda report: report[1][field])]
        assert {state for state, _ in runs[::2]} == {"ok"}, "every device begins well, and is well between two alarms"
        lasted += [(ended - began) / MINUTE_MS for (state, began), (_, ended) in pairwise(runs) if state != "ok"]
    assert lasted
    assert min(lasted) >= shortest
    assert sum(minutes <= longest + 30 for minutes in lasted) / len(lasted) > 0.8, (
        "the end is told by the next document, which a dark home sends later"
    )


def test_cameras_see_the_same_whatever_other_devices_there_are(a_day, monkeypatch):
    monkeypatch.setattr(homes, "DEVICES_EVERY", 1)
    more = documents_of(2000, seconds_between=6, cameras=100)
    assert all(document["devices"]["thermostats"] for _, document in more)
    assert [(event.key, event.facts, document["devices"].get("cameras")) for event, document in more] == [
        (event.key, event.facts, document["devices"].get("cameras")) for event, document in a_day[:2000]
    ]
