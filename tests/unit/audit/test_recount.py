"""The recount of each domain: records with explicit times in, rows out."""

import itertools
import os
import signal
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import orjson
import pytest
from auditing import NOON, facts_of, loaded, records, result
from auditing import seen as seen_by

from audit.reading.checkpoints import Stretch
from audit.recount.recount import Recount

LATER_MS = round((NOON + timedelta(days=30)).timestamp() * 1000)


def seconds(time):
    """A time on 2026-01-01 as seconds since 1970."""
    return datetime.fromisoformat(f"2026-01-01T{time}").replace(tzinfo=UTC).timestamp()


def seen(camera, time, **event):
    return {"devices": {"cameras": {camera: {"last_event": {"has_person": True, "start_time": f"2026-01-01T{time}Z", **event}}}}}


def trip(time, zone=74, **fields):
    return {"lpep_dropoff_datetime": round(seconds(time) * 1000), "PULocationID": zone, **fields}


def counted(query, *values, until_ms=LATER_MS, stretches=None, **settings):
    """The rows of the query's table. values: of records whose clock is an hour after noon."""
    table = result(query, **settings)
    texts = [value if isinstance(value, bytes) else orjson.dumps(value) for value in values]
    recount, number = loaded(table.facts, *texts, clock=NOON + timedelta(hours=1)), len(values)
    recount.judge(table, [Stretch(table.facts.source, 0, *one) for one in stretches or [(0, number, 0, 0)]], 0)
    return [rows[-1] for rows in recount.written(table, until_ms).values()]


def test_a_person_counts_once_however_often_it_is_reported_and_where_the_camera_is():
    found = counted(
        "nest-camera-stats", seen("a", "10:00:00"), seen("a", "10:00:00"), seen("a", "10:59:59"), seen("b", "11:00:00"), seen("b", "x")
    )
    assert sorted((row["zip_code"], row["window"]["start"], row["window"]["end"], row["count"]) for row in found) == [
        ("unknown", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", 2),
        ("unknown", "2026-01-01T11:00:00Z", "2026-01-01T12:00:00Z", 1),
    ]


@pytest.mark.parametrize(
    ("spelt", "count"),
    [
        (b'"has_person":true', 1),
        (b'"has_person" \r\n\t:  true', 1),
        (rb'"has\u005fperson":true', 1),
        (rb'"has_person":true,"x":"\n"', 1),
        (b'"has_person":"true"', 0),
        (b'"has_person":false,"has_motion":true', 0),
    ],
)
def test_a_person_counts_however_json_spells_it(spelt, count):
    value = orjson.dumps(seen("a", "10:00:00")).replace(b'"has_person":true', spelt)
    assert sum(row["count"] for row in counted("nest-camera-stats", value)) == count


def test_what_is_more_than_10_minutes_ahead_of_its_record_does_not_count():
    assert [row["count"] for row in counted("nest-camera-stats", seen("a", "13:10:00"), seen("a", "13:10:01"))] == [1]


def test_a_sighting_that_is_not_after_the_watermark_is_late():
    until_10 = round(seconds("10:00:00") * 1000)
    late = [(0, 1, 0, 0), (1, 4, until_10, until_10)]
    values = [seen("a", "10:10:00"), seen("b", "09:59:59"), seen("b", "10:00:00"), seen("b", "10:00:01")]
    assert [row["count"] for row in counted("nest-camera-stats", *values, stretches=late)] == [2]


def test_what_a_watermark_dropped_that_is_ahead_of_every_event_should_have_counted_if_it_was_in_time_on_its_partition():
    until_11 = round(seconds("11:00:00") * 1000)
    ahead = [(0, 1, 0, 0), (1, 4, until_11, until_11)]
    values = [seen("a", "10:10:00"), seen("b", "10:00:00"), seen("b", "10:00:01"), seen("b", "10:30:00")]
    assert [row["count"] for row in counted("nest-camera-stats", *values, stretches=ahead)] == [3], "all but the one 10 minutes behind"


def test_a_crowd_is_reached_by_the_sighting_that_makes_it_in_order_of_time():
    values = [seen(name, f"10:0{minute}:00") for name, minute in (("a", 5), ("b", 1), ("c", 3))]
    (row,) = counted("nest-crowds", *values, crowd=2)
    assert (row["crowd"], row["reached_at"]) == (2, "2026-01-01T10:03:00Z")


def device(kind, name, **fields):
    return {"devices": {kind: {name: {"structure_id": "home", "last_connection": "2026-01-01T10:30:00Z", **fields}}}}


def test_an_alarm_is_told_once_an_hour_for_each_of_its_states():
    values = [device("smoke_co_alarms", "a", smoke_alarm_state=state, co_alarm_state="ok") for state in ("warning", "warning", "emergency")]
    assert sorted((row["level"], row["what"], row["time"]) for row in counted("nest-alarms", *values)) == [
        ("error", "smoke: emergency, a of home", "2026-01-01T10:00:00Z"),
        ("warning", "smoke: warning, a of home", "2026-01-01T10:00:00Z"),
    ]


def test_temperatures_are_of_homes_and_hours_and_rounded_half_up():
    values = [device("thermostats", name, ambient_temperature_c=degrees) for name, degrees in (("a", 20.01), ("b", 20.02))]
    (row,) = counted("nest-temperatures", *values, device("thermostats", "c", ambient_temperature_c=20.001))
    assert [row[f"ambient_temperature_c_{of}"] for of in ("avg", "min", "max")] == [Decimal("20.02"), Decimal("20.01"), Decimal("20.02")]
    assert (row["structure_id"], row["readings"]) == ("home", 2)


def test_a_camera_that_is_not_heard_of_is_offline_since_it_was_last_seen():
    found = counted("nest-camera-status", seen("a", "10:00:00"), until_ms=round(seconds("13:10:00") * 1000))
    assert [(row["state"], row["reason"], row["since"], row["alert"]) for row in found] == [
        ("offline", "silent", "2026-01-01T13:00:00Z", "offline")
    ]
    assert counted("nest-camera-status", seen("a", "10:00:00"), until_ms=round(seconds("12:59:59") * 1000)) == []


def test_a_camera_is_active_as_long_as_it_sees_somebody_within_the_time_and_no_longer():
    values = [seen("a", "08:00:00"), seen("a", "09:00:01"), seen("a", "10:00:01")]
    until_ms = round(seconds("11:00:01") * 1000)
    (row,) = counted("nest-camera-activity", *values, until_ms=until_ms, inactive_after="1 hour")
    times = {"first_activity": "2026-01-01T09:00:01Z", "last_activity": "2026-01-01T10:00:01Z"}
    assert row == {"device_id": "a", "zip_code": "unknown", **times, "sightings": 2}
    assert counted("nest-camera-activity", *values, until_ms=until_ms + 1, inactive_after="1 hour") == []


def test_sums_are_exact_and_averages_rounded_half_up():
    amounts = [{"fare_amount": one, "passenger_count": number} for number, one in enumerate([0.1, 0.2, -0.31])]
    (row,) = counted("taxi-borough-stats", *(trip("10:00:00", **one, tip_amount=0.05) for one in amounts), trip("10:00:01"))
    assert (row["borough"], row["trips"], row["fare_amount_sum"]) == ("Manhattan", 4, Decimal("-0.01"))
    assert (row["fare_amount_avg"], row["passenger_count_avg"]) == (Decimal("-0.003333"), 1.0)
    assert (row["total_amount_sum"], row["total_amount_avg"]) == (None, None)


@pytest.mark.parametrize(
    ("pause", "until", "found"),
    [("10:05:00", "10:10:00", [2]), ("10:05:00", "10:09:59", []), ("10:05:01", "10:10:01", [1, 1]), ("10:05:01", "10:05:00", [1])],
)
def test_a_pause_longer_than_the_gap_ends_a_session_which_is_written_when_it_is_over(pause, until, found):
    values = [trip("10:00:00", total_amount=1), trip(pause, total_amount=2)]
    assert [row["trips"] for row in counted("taxi-zone-sessions", *values, until_ms=round(seconds(until) * 1000))] == found


def test_a_session_that_ends_within_a_second_is_over_when_the_watermark_has_passed_its_end():
    value = {**trip("10:00:00"), "lpep_dropoff_datetime": round(seconds("10:00:00") * 1000) + 500}
    end_ms = round(seconds("10:05:00") * 1000) + 500
    assert counted("taxi-zone-sessions", value, until_ms=end_ms - 300) == []
    assert len(counted("taxi-zone-sessions", value, until_ms=end_ms)) == 1


def test_windows_that_slide_hold_a_trip_several_times():
    found = counted("taxi-borough-stats", trip("10:20:00"), taxi_slide="15 minutes")
    assert sorted(row["window"]["start"][11:16] for row in found) == ["09:30", "09:45", "10:00", "10:15"]


@pytest.mark.parametrize(
    ("length", "start", "end"),
    [
        ("20 minutes", "2026-01-01T10:40:00Z", "2026-01-01T11:00:00Z"),
        ("7 minutes", "2026-01-01T10:44:00Z", "2026-01-01T10:51:00Z"),
        ("2 days", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"),
    ],
)
@pytest.mark.parametrize("query", ["nest-camera-stats", "nest-crowds", "nest-temperatures", "taxi-borough-stats", "taxi-flows"])
def test_a_window_is_as_long_as_its_setting_says_and_begins_at_a_multiple_of_that_since_1970(query, length, start, end):
    thermostat = {"thermostats": {"t": {"last_connection": "2026-01-01T10:44:59Z", "ambient_temperature_c": 20}}}
    value = {"devices": {**seen("a", "10:44:59")["devices"], **thermostat}} if query.startswith("nest") else trip("10:44:59")
    (row,) = counted(query, value, nest_window=length, taxi_window=length, crowd=1)
    assert row["window"] == {"start": start, "end": end}


@pytest.mark.parametrize(
    ("fields", "passengers", "fare"),
    [
        (b'"passenger_count":1.0,"fare_amount":12.50', 1, "12.50"),
        (b'"passenger_count":1e2,"fare_amount":1.25e1', 100, "12.50"),
        (b'"passenger_count":12.5e-1,"fare_amount":1.25e-1', None, None),
        (b'"passenger_count":1e2,"fare_amount":1e2,"extra":1e100', None, None),
        (b'"passenger_count":9223372036854775808,"fare_amount":12.345', None, None),
        (b'"passenger_count":9223372036854775807,"fare_amount":12.340000000000000001', 9223372036854775807, None),
        (b'"passenger_count":"1","fare_amount":"12.5"', None, None),
        (b'"passenger_count":2,"fare_amount":9999999999.990', 2, "9999999999.99"),
        (b'"passenger_count":1.2345678901234567e16, "fare_amount": 1.10', None, "1.10"),
        (b'"passenger_count":1.234567890123456e16', None, None),
        (b'"passenger_count":1.23456789012345e16', 12345678901234500, None),
        (b'"passenger_count":1234567890123456.0', 1234567890123456, None),
        (b'"passenger_count":1e16,"fare_amount":10000000000', 10**16, None),
    ],
)
def test_a_number_counts_exactly_or_not_at_all(fields, passengers, fare):
    value = b'{"lpep_dropoff_datetime":%d,"PULocationID":74,%b}' % (round(seconds("10:00:00") * 1000), fields)
    (row,) = counted("taxi-borough-stats", value)
    assert row["trips"] == 1
    assert row["passenger_count_avg"] == (None if passengers is None else float(passengers))
    assert row["fare_amount_sum"] == (fare and Decimal(fare))


def test_ctrl_c_ends_a_recount_of_many_records():
    facts, recount = facts_of("nest-camera-status"), Recount()
    endless = itertools.repeat(records("nest-logs", *[seen_by("c1")] * 5_000))
    interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        recount.load([facts], endless)
    interrupt.join()
