"""The queries on thermostats and smoke alarms as streams: which readings count, batch after batch, and which come too late."""

from streaming import Record, at

from infrastructure.settings import Settings
from pipeline.domains import nest

BY_NAME = {query.name: query for query in nest.queries(Settings())}
TEMPERATURES, ALARMS = BY_NAME["nest-temperatures"], BY_NAME["nest-alarms"]
TEN_MINUTES = Settings(watermark="10 minutes")
_READ = "ambient_temperature_c_"


def read(time, celsius, device="t1", structure="s1"):
    thermostat = {"device_id": device, "structure_id": structure, "last_connection": at(time), "ambient_temperature_c": celsius}
    return Record({"devices": {"thermostats": {device: thermostat}}})


def hours(rows):
    """(readings, mean, lowest, highest) by structure and the start of the hour."""
    return {
        (row["structure_id"], row["window"]["start"][11:16]): (row["readings"], *(row[_READ + name] for name in ("avg", "min", "max")))
        for row in rows
    }


class TestTemperatures:
    def test_mean_lowest_and_highest_per_structure_and_hour(self, stream):
        first, second = stream(TEMPERATURES).run(
            [read("10:00", 20), read("10:30", 21.5, "t2"), read("10:59:59", 18), read("10:10", 30, "t3", "s2")],
            [read("11:00", 19.5), read("10:55", 20.5)],
        )
        assert hours(first.rows) == {("s1", "10:00"): (3, 19.83, 18, 21.5), ("s2", "10:00"): (1, 30, 30, 30)}
        assert hours(second.rows) == {("s1", "10:00"): (4, 20, 18, 21.5), ("s1", "11:00"): (1, 19.5, 19.5, 19.5)}

    def test_a_reading_that_is_reported_again_counts_once_whatever_batch_it_comes_in(self, stream):
        temperatures = stream(TEMPERATURES)
        temperatures.run([read("10:00", 10), read("10:00", 10)], [read("10:00", 10), read("10:01", 20)])
        assert hours(temperatures.table) == {("s1", "10:00"): (2, 15, 10, 20)}

    def test_a_reading_counts_until_the_watermark_reaches_it(self, stream):
        _, in_time, too_late = stream(TEMPERATURES, settings=TEN_MINUTES).run(
            [read("10:30", 20)], [read("10:20:01", 22)], [read("10:20", 24)]
        )
        assert (in_time.dropped, hours(in_time.rows)) == (0, {("s1", "10:00"): (2, 21, 20, 22)})
        assert (too_late.dropped, too_late.rows) == (1, [])

    def test_what_is_no_reading_counts_nowhere(self, stream):
        no_readings = [
            read("10:00", None),
            read("10:00", "warm"),
            Record({"devices": {"thermostats": {"t1": {"ambient_temperature_c": 20}}}}),
            Record({"devices": {"thermostats": [1], "cameras": {}}}),
            Record(read("10:00", 20).value, timestamp=at("09:49")),
            Record(b"not JSON"),
        ]
        (only,) = stream(TEMPERATURES).run([*no_readings, read("10:00", 20, "t2")])
        assert hours(only.rows) == {("s1", "10:00"): (1, 20, 20, 20)}

    def test_ids_that_a_document_leaves_out_are_its_key_and_unknown(self, stream):
        bare = {"last_connection": at("10:00"), "ambient_temperature_c": 20}
        (only,) = stream(TEMPERATURES).run([{"devices": {"thermostats": {"t1": bare, "t2": bare}}}])
        assert hours(only.rows) == {("unknown", "10:00"): (2, 20, 20, 20)}


def raised(time, device="a1", **states):
    alarm = {"device_id": device, "structure_id": "s1", "last_connection": at(time), **states}
    return Record({"devices": {"smoke_co_alarms": {device: alarm}}})


def told(batch):
    """(hour, level, what) of each alert."""
    return sorted((row["time"][11:16], row["level"], row["what"]) for row in batch.rows)


class TestAlarms:
    def test_an_alarm_is_told_once_an_hour_as_soon_as_it_is_reported(self, stream):
        first, still, next_hour = stream(ALARMS).run(
            [raised("10:00", smoke_alarm_state="ok"), raised("10:40", smoke_alarm_state="emergency")],
            [raised("10:41", smoke_alarm_state="emergency"), raised("10:39", smoke_alarm_state="emergency")],
            [raised("11:00", smoke_alarm_state="emergency"), raised("11:01", smoke_alarm_state="ok")],
        )
        assert told(first) == [("10:00", "error", "smoke: emergency, a1 of s1")]
        assert told(still) == []
        assert told(next_hour) == [("11:00", "error", "smoke: emergency, a1 of s1")]

    def test_devices_alarms_and_states_are_told_by_themselves(self, stream):
        (only,) = stream(ALARMS).run(
            [
                raised("10:00", smoke_alarm_state="warning", co_alarm_state="ok", battery_health="replace"),
                raised("10:01", smoke_alarm_state="emergency", co_alarm_state="warning", battery_health="replace"),
                raised("10:00", "a2", battery_health="replace", co_alarm_state=None),
            ]
        )
        assert told(only) == [
            ("10:00", "error", "smoke: emergency, a1 of s1"),
            ("10:00", "warning", "battery: replace, a1 of s1"),
            ("10:00", "warning", "battery: replace, a2 of s1"),
            ("10:00", "warning", "co: warning, a1 of s1"),
            ("10:00", "warning", "smoke: warning, a1 of s1"),
        ]

    def test_an_alarm_that_is_behind_the_watermark_is_told_no_more(self, stream):
        _, in_time, too_late = stream(ALARMS, settings=TEN_MINUTES).run(
            [raised("10:30", co_alarm_state="warning")],
            [raised("10:20:01", "a2", co_alarm_state="warning")],
            [raised("10:20", "a3", co_alarm_state="warning")],
        )
        assert (in_time.dropped, told(in_time)) == (0, [("10:00", "warning", "co: warning, a2 of s1")])
        assert (too_late.dropped, told(too_late)) == (1, [])

    def test_reports_that_all_is_well_move_the_watermark(self, stream):
        *_, too_late = stream(ALARMS, settings=TEN_MINUTES).run(
            [raised("10:30", smoke_alarm_state="ok"), raised("10:00", "a2", co_alarm_state="warning")],
            [raised("10:20", "a3", co_alarm_state="warning")],
        )
        assert (too_late.dropped, told(too_late)) == (1, [])
