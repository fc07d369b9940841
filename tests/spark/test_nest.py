"""The Nest transforms on static frames: what counts, in which hour, and what lands in the dead letters."""

import json
from datetime import datetime
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from letters import reasons
from messages import refused

from contract.json_text import time_of
from contract.topics import MAX_RECORD_BYTES, MAX_VALUE_BYTES
from infrastructure.settings import Settings
from pipeline.domains.nest import camera_stats, cameras, unusable
from pipeline.domains.nest_documents import DEVICE_LOCATIONS, sightings
from pipeline.domains.nest_status import reports
from pipeline.sources.kafka import NO_CLOCK

IS_NO_TIME = "is not a date and time of the years 1970 to 9999, such as 2026-01-31T10:00:00Z; the rest was used"
sightings_of, letters_of = partial(sightings, future="10 minutes"), partial(unusable, future="10 minutes")


def document(**all_cameras):
    return json.dumps({"metadata": {"client_version": 1}, "devices": {"cameras": all_cameras}, "structures": {}}).encode()


def camera(start_time="2026-01-01T10:00:00.000Z", *, has_person=True, **fields):
    return {"device_id": "cam-1", "last_event": {"has_person": has_person, "start_time": start_time}, **fields}


def seen_at(spark, *rows):
    return spark.createDataFrame(
        [(device, datetime.fromisoformat(time)) for device, time in rows], "device_id string, start_time timestamp"
    )


@pytest.fixture
def locations(spark):
    return spark.createDataFrame([("cam-1", "94107"), ("cam-2", "94107"), ("cam-3", "02134")], "device_id string, zip_code string")


def counts(frame):
    # The driver's own zone must not matter: Spark gives naive local times, so the comparison is by text, in the session's UTC.
    return {
        (row.zip_code, row.start): row["count"]
        for row in frame.selectExpr("zip_code", "string(window.start) AS start", "`count`").collect()
    }


class TestCameraStats:
    def test_counts_people_per_zip_code_and_hour(self, spark, locations):
        seen = seen_at(spark, ("cam-1", "2026-01-01T10:10:00Z"), ("cam-2", "2026-01-01T10:20:00Z"), ("cam-3", "2026-01-01T10:30:00Z"))
        assert counts(camera_stats(seen, locations)) == {("94107", "2026-01-01 10:00:00"): 2, ("02134", "2026-01-01 10:00:00"): 1}

    def test_the_hour_begins_with_its_first_instant_and_ends_before_the_next(self, spark, locations):
        seen = seen_at(spark, ("cam-1", "2026-01-01T10:59:59.999999Z"), ("cam-1", "2026-01-01T11:00:00Z"))
        assert counts(camera_stats(seen, locations)) == {("94107", "2026-01-01 10:00:00"): 1, ("94107", "2026-01-01 11:00:00"): 1}

    def test_a_repeated_report_is_one_sighting(self, spark, locations):
        seen = seen_at(spark, ("cam-1", "2026-01-01T10:10:00Z"), ("cam-1", "2026-01-01T10:10:00Z"), ("cam-1", "2026-01-01T10:10:01Z"))
        assert counts(camera_stats(seen, locations)) == {("94107", "2026-01-01 10:00:00"): 2}

    def test_a_camera_without_a_location_counts_as_unknown(self, spark, locations):
        seen = seen_at(spark, ("cam-99", "2026-01-01T10:10:00Z"))
        assert counts(camera_stats(seen, locations)) == {("unknown", "2026-01-01 10:00:00"): 1}

    def test_zip_codes_keep_their_leading_zero(self, spark):
        table = DEVICE_LOCATIONS.load(spark, Settings())
        assert {len(row.zip_code) for row in table.collect()} == {5}, "a zip code of data/device_locations.csv was read as a number"

    def test_a_table_of_ones_own_is_read_from_all_of_its_files(self, spark, tmp_path):
        (tmp_path / "1.csv").write_text("zip_code,floor,device_id\n01234,2,a\n")
        (tmp_path / "2.csv").write_text("device_id,zip_code\nb,N/A\n")
        pq.write_table(pa.table({"device_id": ["c", "d"], "zip_code": [94107, None], "tags": [["x"], []]}), tmp_path / "3.parquet")
        settings = Settings(home=tmp_path / "home", static_tables=f"device_locations={tmp_path}")
        expected = [("a", "01234"), ("b", "N/A"), ("c", "94107"), ("d", "")]
        assert [tuple(row) for row in DEVICE_LOCATIONS.load(spark, settings).collect()] == expected
        (tmp_path / "2.csv").write_text("device,zip_code\nb,N/A\n")
        with refused("static table device_locations", "device_id string, zip_code string"):
            DEVICE_LOCATIONS.load(spark, settings)
        (tmp_path / "2.csv").write_text("device_id,zip_code\na,N/A\n")
        with refused(f"{tmp_path}/2.csv", "device_id a", "more than once"):
            DEVICE_LOCATIONS.load(spark, settings)


class TestSightings:
    def test_reads_timestamps_as_the_api_writes_them(self, records):
        times = ["2026-01-01T10:00:00.000Z", "2026-01-01T10:00:00Z", "2026-01-01T11:00:00+01:00", "2026-01-01T10:00:00.000000Z"]
        rows = sightings_of(records(*(document(a=camera(time)) for time in times))).selectExpr("string(start_time) AS start").collect()
        assert [row.start for row in rows] == ["2026-01-01 10:00:00"] * len(times)

    def test_keeps_only_cameras_that_see_a_person(self, records):
        value = document(a=camera(), b=camera(has_person=False), c={"device_id": "cam-3"}, d=camera(has_person=None))
        assert [row.device_id for row in sightings_of(records(value)).collect()] == ["cam-1"]

    def test_a_camera_without_device_id_goes_by_its_key(self, records):
        value = document(the_key={"last_event": {"has_person": True, "start_time": "2026-01-01T10:00:00Z"}})
        assert [row.device_id for row in sightings_of(records(value)).collect()] == ["the_key"]

    def test_the_order_of_fields_does_not_matter(self, records):
        shuffled = b'{"structures": {}, "devices": {"cameras": {"a": {"last_event": {"start_time": "2026-01-01T10:00:00Z", "has_person": true}, "device_id": "cam-1"}}}}'
        assert sightings_of(records(shuffled)).count() == 1

    def test_a_name_can_be_spelled_with_escapes_and_blanks(self, records):
        text = document(a=camera()).decode()
        spellings = [text.replace("has_person", r"has\u005fperson"), text.replace('"has_person": true', '"has_person"\r\n\t : \n true')]
        assert sightings_of(records(*(spelling.encode() for spelling in spellings))).count() == 2

    def test_one_field_of_another_type_does_not_take_the_other_cameras_with_it(self, records):
        value = document(
            a=camera(), b={"device_id": "cam-2", "last_event": {"has_person": "perhaps", "start_time": "2026-01-01T10:00:00Z"}}
        )
        assert [row.device_id for row in sightings_of(records(value)).collect()] == ["cam-1"]

    def test_a_camera_that_is_a_text_does_not_take_the_other_cameras_with_it(self, records):
        value = document(a="offline", b=camera(), c=None, d=camera(device_id="cam-2", is_online="perhaps"), e=[1])
        assert [row.device_id for row in sightings_of(records(value)).collect()] == ["cam-1", "cam-2"]
        assert [row.device_id for row in reports(records(value), future="10 minutes").collect()] == ["cam-1", "cam-2"]
        assert [row.device_id for row in cameras(records(value)).collect()] == ["cam-1", "cam-2"]

    def test_of_a_document_with_a_name_twice_nothing_counts(self, records):
        once = document(a=camera(), b=camera("2026-01-01T10:00:01Z"))
        values = [
            once.replace(b'"b"', b'"a"'),
            once.replace(b"}}}}", b'}}}, "cameras": 3}'),
            once[:-1] + b', "devices": null}',
            once.replace(b'"start_time"', b'"has_person": false, "start_time"'),
            once[:-1] + b', "x": {"y": 1, "y": 1}}',
        ]
        frame = records(*values)
        assert sightings_of(frame).count() == reports(frame, future="10 minutes").count() == cameras(frame).count() == 0
        assert reasons(letters_of(frame)) == dict.fromkeys(range(5), "a name is there twice in an object")

    def test_an_id_counts_up_to_255_characters(self, records):
        ids = ["i" * 255, "i" * 256, "i" * 5_300_000]
        values = [document(a=camera(device_id=device)) for device in ids]
        for frame in (sightings_of(records(*values)), reports(records(*values), future="10 minutes"), cameras(records(*values))):
            assert [row.offset for row in frame.collect()] == [0]

    @pytest.mark.parametrize("read", [sightings_of, partial(reports, future="10 minutes"), cameras])
    def test_a_record_whose_own_time_is_in_microseconds_is_a_dead_letter(self, records, read):
        frame = records(document(a=camera())).selectExpr("* except (clock)", "timestamp(null) AS clock")
        assert read(frame).count() == 0
        assert reasons(letters_of(frame)) == {0: NO_CLOCK}


class TestTimes:
    """When a start_time is a time: the forms that docs/values.md lists."""

    def test_a_date_with_a_time_of_day_counts(self, records):
        expected = {
            "2017-11-22T05:42:28.360Z": "2017-11-22 05:42:28.36",
            "2017-11-22T05:42:28": "2017-11-22 05:42:28",
            "2017-11-22 05:42:28": "2017-11-22 05:42:28",
            "2017-11-22T07:42:28+02:00": "2017-11-22 05:42:28",
            "2017-11-22T05:42:28.360123456Z": "2017-11-22 05:42:28.360123",
            "1970-01-01T00:00:00Z": "1970-01-01 00:00:00",
        }
        frame = records(*(document(a=camera(time)) for time in expected))
        assert [row.start for row in sightings_of(frame).selectExpr("string(start_time) AS start").collect()] == list(expected.values())
        assert reasons(letters_of(frame)) == {}
        assert None not in map(time_of, expected), "producers take the same times"

    def test_anything_else_is_a_dead_letter_that_says_so(self, records):
        times = [
            "",
            "00:00:01",
            "T00:00:01Z",
            "2017",
            "2017-11",
            "2017-11-22",
            "2017-11-22T05:42Z",
            "now",
            "epoch",
            "1511329348",
            1511329348,
            1.5,
            "yesterday",
        ]
        times += [
            "0001-01-01T00:00:00Z",
            "-290308-12-22T00:00:00Z",
            "+10000-01-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
        ]
        times += [
            "2017-02-29T10:00:00Z",
            "2017-11-22T24:00:00Z",
            "2016-12-31T23:59:60Z",
            "22/11/2017 05:42:28",
            " 2017-11-22T05:42:28Z",
            "2017-11-22T05:42:28+20:00",
            True,
            {"s": 1},
        ]
        frame = records(*(document(a=camera(time)) for time in times))
        assert sightings_of(frame).count() == 0
        assert cameras(frame).where("last_event.start_time is not null").count() == 0
        found = reasons(letters_of(frame))
        expected = f"start_time {IS_NO_TIME}"
        assert {time if isinstance(time, str) else str(time): found.get(offset) for offset, time in enumerate(times)} == {
            str(time): expected for time in times
        }
        assert {*map(time_of, times)} == {None}, "producers take the same times"


class TestUnusable:
    def test_a_document_that_lacks_things_is_fine(self, records):
        values = [
            document(),
            document(a=camera()),
            document(a={"device_id": "cam-1"}),
            document(a={"device_id": "cam-1", "last_event": None}),
            document(a=camera(end_time=None)),
            document(a=camera(activity_zones=None)),
            document(a=None),
            b'{"devices": {}}',
            b'{"devices": {"cameras": null}}',
            b'{"devices": {"cameras": {}, "thermostats": {}}, "metadata": {"access_token": "x"}}',
        ]
        assert reasons(letters_of(records(*values))) == {}

    def test_what_cannot_be_used_has_a_reason(self, records):
        expected = [
            (None, "empty"),
            (b"", "empty"),
            (b"hello", "not JSON"),
            (document(a=camera())[:-10], "not JSON"),
            (b"\xff\xfe{", "not UTF-8"),
            (b"{}", "no devices"),
            (b'{"devices": null}', "no devices"),
            (b'{"devices": 5}', "no devices"),
            (b"[1, 2]", "no devices"),
            (b'"text"', "no devices"),
            (document(a=camera(is_online="perhaps")), "a field is of another type; the rest was used"),
            (document(a=camera(start_time=None)), "a person without start_time; the rest was used"),
            (document(a="offline", b=camera()), "a field is of another type; the rest was used"),
            (document(a=camera(device_id="i" * 256)), "device_id is longer than 255 characters; the rest was used"),
            (document(**{"i" * 256: {}}), "device_id is longer than 255 characters; the rest was used"),
            (document(a=camera()) * 2, "more than one JSON value, or other text after the first"),
        ]
        found = reasons(letters_of(records(*(value for value, _ in expected))))
        assert [(value, found.get(offset)) for offset, (value, _) in enumerate(expected)] == expected

    def test_an_event_in_the_future_of_its_record_is_a_dead_letter_and_the_rest_of_its_document_counts(self, records):
        at_the_bound, beyond = camera("2026-01-01T12:10:00.000Z"), camera("2026-01-01T12:10:00.001Z")
        assert reasons(letters_of(records(document(a=at_the_bound)))) == {}
        value = document(a=at_the_bound, b={**beyond, "device_id": "cam-2"}, c={**camera("2099-01-01T00:00:00Z"), "device_id": "cam-3"})
        assert [row.device_id for row in sightings_of(records(value)).collect()] == ["cam-1"]
        assert reasons(letters_of(records(value))) == {0: "start_time is in the future; the rest was used"}
        assert cameras(records(value)).count() == 3
        sighted = {row.device_id: row.sighting is not None for row in reports(records(value), future="10 minutes").collect()}
        assert sighted == {"cam-1": True, "cam-2": False, "cam-3": False}

    def test_a_dead_letter_names_its_record_and_keeps_its_bytes(self, records):
        row = letters_of(records(document(), b"\xff\x00rubbish")).collect()
        assert len(row) == 1
        assert json.loads(row[0].key) == {"offset": 1, "partition": 0, "topic": "nest-logs"}
        assert bytes(row[0].value) == b"\xff\x00rubbish"
        assert {h.key: bytes(h.value).decode() for h in row[0].headers} == {
            "topic": "nest-logs",
            "partition": "0",
            "offset": "1",
            "timestamp": "2026-01-01T12:00:00.000Z",
            "reason": "not UTF-8",
        }


class TestCameras:
    def test_a_row_for_each_camera_with_both_spellings_of_the_audio_field(self, records):
        value = document(a=camera(is_audio_input_enable=True), b={"device_id": "cam-2", "is_audio_input_enabled": False})
        rows = cameras(records(value)).select("device_id", "is_audio_input_enabled", "date", "offset").collect()
        assert [(row.device_id, row.is_audio_input_enabled, str(row.date), row.offset) for row in rows] == [
            ("cam-1", True, "2026-01-01", 0),
            ("cam-2", False, "2026-01-01", 0),
        ]

    def test_a_person_without_start_time_is_archived_though_it_counts_nowhere(self, records):
        value = document(a=camera(start_time=None))
        assert cameras(records(value)).count() == 1
        assert sightings_of(records(value)).count() == 0


def test_a_document_of_5_mb_is_read(records):
    zones = [{"name": f"zone {number}", "id": "x" * 1000} for number in range(5000)]
    value = document(a=camera(activity_zones=zones))
    assert len(value) > 5_000_000
    assert sightings_of(records(value)).count() == 1


def test_of_a_value_that_would_not_fit_into_a_dead_letter_the_beginning_is_kept(records):
    (letter,) = letters_of(records(b"x" * MAX_RECORD_BYTES)).collect()
    assert bytes(letter.value) == b"x" * MAX_VALUE_BYTES
    reason = next(bytes(header.value) for header in letter.headers if header.key == "reason")
    assert reason == f"not JSON; only its first {MAX_VALUE_BYTES:,} bytes are kept".encode()
