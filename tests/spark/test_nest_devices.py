"""The devices of Nest documents that are not cameras, on static frames: what is archived, what is read, and what is a dead letter."""

import json
from datetime import date
from decimal import Decimal

from letters import reasons
from plain import one_camera
from streaming import at

from pipeline.domains.nest import unusable
from pipeline.domains.nest_devices import devices, readings, temperatures


def document(**types):
    return json.dumps({"devices": types}).encode()


def thermostat(time="2026-01-01T10:00:00.000Z", celsius=21.5, **fields):
    return {"device_id": "t1", "structure_id": "s1", "last_connection": time, "ambient_temperature_c": celsius, **fields}


def alarm(time="2026-01-01T10:00:00.000Z", **states):
    return {"device_id": "a1", "structure_id": "s1", "last_connection": time, **states}


def kept(frame):
    """(device_type, device_id, device) of each row, the device parsed."""
    return [
        (row.device_type, row.device_id, json.loads(row.device)) for row in frame.orderBy("offset", "device_type", "device_id").collect()
    ]


def reasons_of(records, documents):
    return reasons(unusable(records(*(document(**types) for types in documents)), future="10 minutes"))


class TestDevices:
    def test_a_row_for_each_device_with_what_is_often_asked_in_columns(self, records):
        value = document(
            thermostats={"t1": thermostat(hvac_state="heating", humidity=40)}, smoke_co_alarms={"a1": alarm(battery_health="ok")}
        )
        rows = {row.device_type: row for row in devices(records(value)).selectExpr("*", "string(last_connection) AS last").collect()}
        of = rows["thermostats"]
        assert (of.device_id, of.structure_id, of["last"], of.date) == ("t1", "s1", "2026-01-01 10:00:00", date(2026, 1, 1))
        assert (of.ambient_temperature_c, of.humidity, of.hvac_state, of.battery_health) == (Decimal("21.50"), 40, "heating", None)
        assert (rows["smoke_co_alarms"].battery_health, rows["smoke_co_alarms"].humidity) == ("ok", None)
        assert {(row.topic, row.partition, row.offset) for row in rows.values()} == {("nest-logs", 0, 0)}

    def test_a_device_of_an_unknown_type_is_kept_whole(self, records):
        doorbell = {"rings": 3, "battery": {"level": 0.5, "cells": [1, None]}, "name": "Tür"}
        assert kept(devices(records(document(doorbells={"d1": doorbell})))) == [("doorbells", "d1", doorbell)]

    def test_a_field_that_has_no_column_is_kept_with_its_device(self, records):
        value = thermostat(eco={"mode": "manual"})
        assert kept(devices(records(document(thermostats={"t1": value})))) == [("thermostats", "t1", value)]

    def test_cameras_have_an_archive_of_their_own(self, records):
        assert devices(records(one_camera("cam-1", at("10:00")))).count() == 0

    def test_what_is_there_is_kept_whatever_its_form(self, records):
        documents = [
            document(thermostats={}, companyName={}),
            document(thermostats=None, smoke_co_alarms={"a1": None}),
            document(chimes=[1, 2]),
            document(thermostats=7),
            document(doorbells={"d1": [1], "d2": 2}),
        ]
        assert kept(devices(records(*documents))) == [
            ("chimes", None, [1, 2]),
            ("thermostats", None, 7),
            ("doorbells", "d1", [1]),
            ("doorbells", "d2", 2),
        ]

    def test_a_thermostat_that_is_a_text_does_not_take_the_others_with_it(self, records):
        value = document(thermostats={"t0": "off", "t1": thermostat()})
        assert [row.device_id for row in readings(records(value), future="10 minutes").collect()] == ["t1"]

    def test_a_number_beside_a_thermostat_that_is_a_text_is_not_rounded(self, records):
        value = document(thermostats={"t0": "{}", "t1": thermostat(), "t2": thermostat(celsius=7)})
        value = value.replace(b" 7", b" 21.5" + b"0" * 40 + b"1")
        found = readings(records(value), future="10 minutes").collect()
        assert [(row.device_id, row.ambient_temperature_c) for row in found] == [("t1", Decimal("21.50"))]

    def test_a_device_keeps_all_digits_of_its_numbers(self, records):
        big, small = b"115792089237316195423570985008687907853269984665640564039457584007913129639935", b"0.12345678901234567890"
        value = document(doorbells={"d1": {"big": 0, "many": [1, 7]}}).replace(b"7", small).replace(b": 0", b": " + big)
        assert kept(devices(records(value))) == [("doorbells", "d1", {"big": big.decode(), "many": [1, small.decode()]})]
        assert devices(records(value[:-1])).count() == 0, "what is not JSON is none with numbers as strings either"

    def test_a_field_of_another_type_is_null_and_still_in_the_device(self, records):
        value = thermostat(humidity="damp")
        (row,) = devices(records(document(thermostats={"t1": value}))).collect()
        assert (row.humidity, row.ambient_temperature_c, json.loads(row.device)) == (None, Decimal("21.50"), value)

    def test_what_is_no_document_has_no_devices(self, records):
        values = [None, b"", b"hello", b"\xff\xfe{", b"{}", b'{"devices": 5}', b"[1]"]
        assert devices(records(*values)).count() == 0

    def test_a_reading_may_be_as_far_ahead_of_its_record_as_allowed(self, records):
        ahead = [document(thermostats={"t1": thermostat(f"2026-01-01T12:10:00.00{more}Z")}) for more in range(2)]
        assert [row.offset for row in readings(records(*ahead), future="10 minutes").collect()] == [0]


def test_a_mean_is_rounded_once(spark):
    columns = {
        "device_id": "string(id)",
        "structure_id": "'s1'",
        "last_connection": "timestamp'2026-01-01T10:00:00Z'",
        "ambient_temperature_c": "cast(if(id < 5000, 20.01, 20) AS decimal(5,2))",
    }
    read = spark.range(10_001).selectExpr(*(f"{value} AS {name}" for name, value in columns.items()))
    (row,) = temperatures(read).collect()
    assert row.ambient_temperature_c_avg == Decimal("20.00"), "20.0049995 was rounded to 20.005 first"


class TestUnusable:
    def test_a_document_that_lacks_things_or_has_devices_of_unknown_types_is_fine(self, records):
        documents = [
            {"thermostats": {"t1": thermostat()}, "smoke_co_alarms": {"a1": alarm(smoke_alarm_state="emergency")}},
            {"thermostats": {"t1": {}}, "smoke_co_alarms": {"a1": {"device_id": "a1"}}},
            {"thermostats": {"t1": None}},
            {"thermostats": {"t1": thermostat("2026-01-01T12:10:00.000Z")}},
            {"doorbells": {"d1": {"last_connection": 7}}, "chimes": [1]},
        ]
        assert reasons_of(records, documents) == {}

    def test_what_cannot_be_used_has_a_reason(self, records):
        expected = [
            (
                {"thermostats": {"t1": thermostat(celsius="warm")}},
                "ambient_temperature_c is not a number that decimal(5,2) holds; the rest was used",
            ),
            (
                {"thermostats": {"t1": thermostat(celsius=1000)}},
                "ambient_temperature_c is not a number that decimal(5,2) holds; the rest was used",
            ),
            ({"thermostats": {"t1": thermostat(humidity=40.5)}}, "humidity is not a number that int holds; the rest was used"),
            (
                {"thermostats": {"t1": thermostat("2026-01-01")}},
                "last_connection is not a date and time of the years 1970 to 9999, such as 2026-01-31T10:00:00Z; the rest was used",
            ),
            ({"thermostats": {"t1": thermostat(structure_id="s" * 256)}}, "structure_id is longer than 255 characters; the rest was used"),
            ({"smoke_co_alarms": {"a" * 256: alarm(device_id=None)}}, "device_id is longer than 255 characters; the rest was used"),
            (
                {"smoke_co_alarms": {"a": alarm(battery_health="b" * 256)}},
                "battery_health is longer than 255 characters; the rest was used",
            ),
            ({"thermostats": [1]}, "a field is of another type; the rest was used"),
            ({"thermostats": {"t1": thermostat(time=None)}}, "a reading without last_connection; the rest was used"),
            ({"smoke_co_alarms": {"a1": alarm(None, battery_health="ok")}}, "a reading without last_connection; the rest was used"),
            ({"thermostats": {"t1": thermostat("2026-01-01T12:10:00.001Z")}}, "last_connection is in the future; the rest was used"),
            ({"smoke_co_alarms": {"a1": alarm("2099-01-01T00:00:00Z")}}, "last_connection is in the future; the rest was used"),
        ]
        found = reasons_of(records, [types for types, _ in expected])
        assert [(types, found.get(offset)) for offset, (types, _) in enumerate(expected)] == expected
