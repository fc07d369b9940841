"""The queries on thermostats and smoke alarms on a real broker, against plain Python over what is in the source topic."""

import json
from collections import defaultdict
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal

import orjson
import pyarrow.dataset as ds
from plain import dropped, folded, read_topic, write_topic
from running import succeed
from verifying import differences, run_once, verified, write

QUERIES = ("nest-temperatures", "nest-alarms", "nest-devices-archive")
SLOWLY = ("--cameras", "20", "--rate", "1", "--speed-up", "120")
FAULTS = ("--late", "0.05", "--too-late", "0.02", "--duplicates", "0.03", "--corrupt", "0.02")
ALARMS = {"smoke": "smoke_alarm_state", "co": "co_alarm_state", "battery": "battery_health"}
BATTERY = {"device_id": "a1", "structure_id": "s1", "last_connection": "2026-01-09T10:20:00Z", "battery_health": "replace"}


def produced(settings, *arguments):
    done = succeed("produce", "nest", "--json", "--unpaced", "--seed", "3", *SLOWLY, *arguments, settings=settings)
    return json.loads(done.stdout.splitlines()[-1])


def documents(settings):
    """What is a document in the source topic, told without the code under test."""
    for message in read_topic(settings, "nest-logs"):
        try:
            yield orjson.loads(message.value())["devices"]
        except (ValueError, KeyError, TypeError):
            continue


def hour_of(device):
    return f"{datetime.fromisoformat(device['last_connection']):%Y-%m-%dT%H:00:00Z}"


def temperatures_of(settings):
    """(readings, mean, lowest, highest) by structure and hour."""
    readings = {
        (device["device_id"], device["last_connection"]): device
        for devices in documents(settings)
        for device in devices.get("thermostats", {}).values()
    }
    by_hour = defaultdict(list)
    for device in readings.values():
        by_hour[device["structure_id"], hour_of(device)].append(Decimal(str(device["ambient_temperature_c"])))
    mean = lambda some: float((sum(some) / len(some)).quantize(Decimal("0.01"), ROUND_HALF_UP))  # noqa: E731
    return {key: (len(some), mean(some), float(min(some)), float(max(some))) for key, some in by_hour.items()}


def alarms_of(settings):
    """(device, alarm, state, hour) of each alarm that is not ok."""
    return {
        (device["device_id"], alarm, device[field], hour_of(device))
        for devices in documents(settings)
        for device in devices.get("smoke_co_alarms", {}).values()
        for alarm, field in ALARMS.items()
        if device[field] != "ok"
    }


def alerts_in(settings):
    """The alerts of devices in the topic, by key; checks that none is there twice."""
    alerts = [(orjson.loads(one.key()), orjson.loads(one.value())) for one in read_topic(settings, "alerts") if one.key()[:1] == b"{"]
    keys = [(key["device_id"], key["alarm"], key["state"], key["window"]["start"]) for key, _ in alerts]
    assert len(set(keys)) == len(keys), "written twice"
    return dict(zip(keys, [value for _, value in alerts], strict=True))


def test_results_are_those_of_a_plain_count_and_verify_proves_them(fresh):
    summary = produced(fresh, "--limit", "900", "--start", "2026-01-01T00:00:00Z", *FAULTS)
    doorbells = {"d1": {"rings": 3, "name": "Tür"}}
    write_topic(fresh, "nest-logs", [orjson.dumps({"devices": {"doorbells": doorbells}})], clock=lambda _: datetime(2026, 1, 1, tzinfo=UTC))
    write(fresh, "alerts", b"nest-archive", b'{"time": "2026-01-01T00:00:00Z", "level": "error", "query": "nest-archive"}')
    run_once(fresh, *QUERIES, "nest-dead-letters", partition_skew="1 hour")  # two homes are not in every partition

    table = {
        (row["structure_id"], row["window"]["start"]): (
            row["readings"],
            *(row[f"ambient_temperature_c_{of}"] for of in ("avg", "min", "max")),
        )
        for row in folded(fresh, "nest-temperatures").values()
    }
    assert table == temperatures_of(fresh), "the whole topic in one batch: nothing can be late, so all must count"
    assert len({structure for structure, _ in table}) == 2
    alerts = alerts_in(fresh)
    assert alerts.keys() == alarms_of(fresh)
    assert {alarm for _, alarm, _, _ in alerts} == ALARMS.keys()
    assert all((alert["level"] == "error") == (state == "emergency") for (_, _, state, _), alert in alerts.items())

    archived = ds.dataset(fresh.lake / "nest" / "devices", partitioning="hive", exclude_invalid_files=True).to_table().to_pylist()
    held = sum(len(devices.get(kind, {})) for devices in documents(fresh) for kind in ("thermostats", "smoke_co_alarms"))
    assert len(archived) == held + 1
    assert [json.loads(row["device"]) for row in archived if row["device_type"] == "doorbells"] == [doorbells["d1"]]

    produced(fresh, "--limit", "500", "--start", "2026-01-05T04:00:00Z", *FAULTS)
    days_late = {"device_id": "t9", "last_connection": "2026-01-02T00:00:00Z", "ambient_temperature_c": 20, "battery_health": "replace"}
    value = orjson.dumps({"devices": {kind: {"t9": days_late} for kind in ("thermostats", "smoke_co_alarms")}})
    write_topic(fresh, "nest-logs", [value], clock=lambda _: datetime(2026, 1, 5, tzinfo=UTC))
    run_once(fresh, *QUERIES, "nest-dead-letters", max_offsets_per_trigger=300, partition_skew="1 hour")
    found = verified(fresh, *QUERIES, "nest-dead-letters")
    assert {name: found[name].verdict for name in QUERIES} == dict.fromkeys(QUERIES, "right"), found
    assert all(found[name].lateness.late_events > 0 for name in QUERIES[:2]), found
    assert {name: found[name].lateness.late_rows for name in QUERIES[:2]} == {name: dropped(fresh, name) for name in QUERIES[:2]}
    assert found["nest-dead-letters"].rows.equal > summary["corrupt"] > 0
    assert found["nest-devices-archive"].rows.equal > len(archived)
    assert found["nest-alarms"].rows.equal == len(alerts_in(fresh)) > len(alerts)


def test_an_alert_that_somebody_changed_or_made_up_is_named_and_a_reset_leaves_all(fresh):
    write_topic(fresh, "nest-logs", [orjson.dumps({"devices": {"smoke_co_alarms": {"a1": BATTERY}}})], partitions=1)
    run_once(fresh, "nest-alarms")
    ((key, value),) = ((one.key(), one.value()) for one in read_topic(fresh, "alerts"))
    write(fresh, "alerts", key.replace(b"2026-01-09", b"2026-01-08"), value)
    assert verified(fresh, "nest-alarms").verdict == "right", "of an hour before the first that the source gives"
    write(fresh, "alerts", key, value.replace(b"warning", b"error"))
    write(fresh, "alerts", key.replace(b'"a1"', b'"a2"'), value)
    outcome = verified(fresh, "nest-alarms")
    assert outcome.verdict == "wrong"
    assert differences(outcome, "different").keys() == {key.decode()}
    assert differences(outcome, "extra").keys() == {key.decode().replace('"a1"', '"a2"')}

    before = folded(fresh, "alerts")
    done = succeed("reset", "nest-alarms", "--yes", settings=fresh)
    assert "what is in topic alerts stays" in done.stdout + done.stderr
    assert folded(fresh, "alerts") == before
