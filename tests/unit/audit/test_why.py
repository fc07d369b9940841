"""What is behind a row: records and batches in; those that count, that repeat one and that were late out."""

import io
import json
import re
from dataclasses import replace
from datetime import datetime

import orjson
import pytest
from auditing import STATS, Kafka, seen
from rich.console import Console
from typer.testing import CliRunner

from audit.catalog import placed, places_in
from audit.commands import table_named
from audit.time_range import ms_of
from audit.why.records_behind import SeveralRows, why
from audit.why.show import as_json, show
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.topic_ends import first_and_end_offsets
from streamgauge.cli import app

TEN = '{"window":{"end":"2026-01-01T11:00:00Z","start":"2026-01-01T10:00:00Z"},"zip_code":"unknown"}'


@pytest.fixture
def kafka(tmp_path):
    """A broker with a history: 0 counts, 1 repeats it; 2 is of the next hour; 3 and 4 are late, and the event of 4 counts all the same."""
    kafka = Kafka(tmp_path)
    times = [("a", "10:20:00"), ("a", "10:20:00"), ("b", "11:20:00"), ("c", "10:59:00"), ("a", "10:20:00")]
    kafka.write("nest-logs", *(seen(camera, time) for camera, time in times))
    kafka.has_run(STATS, 2, 3, 3, 5, mode="update", committed=4, watermarks=[0, 10 + 1 / 6, 11 + 1 / 6, 11 + 1 / 6])
    kafka.write_count("unknown", 1, 10)
    kafka.write_count("unknown", 1, 11)
    return kafka


def explained(kafka, *key, table=STATS, limit=10, **options):
    chosen, place = placed(table_named(table, kafka.settings), places_in(kafka.settings), kafka.settings)
    return why(chosen, place, key, kafka.settings, limit=limit, **options)


def offsets(some):
    return [one.offset for one in some.first]


def test_a_row_opens_to_the_records_that_count_that_repeat_one_and_that_were_late(kafka):
    found = explained(kafka, "window=2026-01-01T10")
    assert (found.kind, found.found["count"], found.is_sum, found.records) == ("equal", 1, True, 5)
    assert [offsets(found.counted), offsets(found.repeated), offsets(found.late)] == [[0], [1], [3, 4]]
    assert found.repeated.first[0].counted == ("nest-logs", 0, 0)
    of_another, of_the_first = found.late.first
    assert (f"{of_another.watermark:%H:%M}", of_another.batch, of_another.note) == ("11:10", 3, "")
    assert of_the_first.note == "another record of its event counts"


def test_a_wrong_row_is_told_with_what_it_should_be(kafka):
    kafka.write_count("unknown", 2, 10)
    found = explained(kafka, TEN)
    assert (found.kind, found.is_wrong, found.found["count"], found.expected["count"]) == ("different", True, 2, 1)


def test_a_row_that_is_missing_has_its_records_and_one_too_many_has_none(kafka):
    kafka.write_count("unknown", None, 10)
    kafka.write_count("unknown", 7, 8)
    assert [(one.kind, one.counted.count) for one in (explained(kafka, TEN), explained(kafka, "2026-01-01T08"))] == [
        ("missing", 1),
        ("extra", 0),
    ]


def test_records_after_the_row_was_final_are_read_for_late_ones_or_not(kafka):
    found = explained(kafka, "2026-01-01T10", with_late=False)
    assert (found.kind, found.counted.count, found.late.count, found.records) == ("equal", 1, 0, 3)
    assert found.notes == ["records that came too late, after the window was final, were not read"]


def test_of_a_batch_under_way_the_records_are_shown_that_the_row_counts(kafka):
    kafka.write("nest-logs", seen("d", "11:30:00"))
    kafka.has_run("nest-crowds", 6, mode="update", committed=0)
    plan = kafka.settings.checkpoints / "nest-camera-stats-v1-update" / "offsets"
    (plan / "4").write_text((plan / "3").read_text().replace('"0": 5', '"0": 6'))
    for count, records in ((1, [2]), (2, [2, 5])):
        kafka.write_count("unknown", count, 11)
        found = explained(kafka, "2026-01-01T11")
        assert (found.kind, offsets(found.counted), found.is_sum) == ("equal", records, True), count


def test_dead_letters_are_those_of_the_records_behind_the_row_and_how_many_others_there_are(kafka):
    for offset in (1, 2, 4, 99):
        key = orjson.dumps({"offset": offset, "partition": 0, "topic": "nest-logs"})
        kafka.write("dead-letters", b"", key=key, headers={"reason": f"reason {offset}"})
    found = explained(kafka, "window=2026-01-01T10")
    assert ([(one.offset, one.reason) for one in found.letters.first], found.other_letters) == ([(1, "reason 1"), (4, "reason 4")], 1)


def trip(time, zone=74):
    return orjson.dumps(
        {"lpep_dropoff_datetime": ms_of(datetime.fromisoformat(f"2026-01-01T{time}Z")), "PULocationID": zone, "VendorID": 1}
    )


def test_of_a_session_those_are_late_that_would_have_been_one_with_it(kafka):
    times = ["10:00:00", "10:04:00", "12:00:00", "10:06:00", "09:58:00", "10:30:00"]
    kafka.write("nyc-taxi", *map(trip, times), trip("10:05:00", zone=75))
    watermarks = [0, 11 + 5 / 6, 11 + 5 / 6, 11 + 5 / 6]
    kafka.has_run("taxi-zone-sessions-early", 3, 3, 7, 7, mode="update", committed=4, watermarks=watermarks, source="nyc-taxi")
    kafka.write("taxi-zone-sessions-early", b"{}", key=b'{"started":"2026-01-01T10:00:00Z","zone_id":74}')
    found = explained(kafka, "started=2026-01-01T10:00", "74", table="taxi-zone-sessions-early")
    assert (offsets(found.counted), offsets(found.late), found.is_sum, found.expected["trips"]) == ([0, 1], [3, 4], True, 2)


def test_of_a_camera_s_state_all_its_reports_are_behind_it(kafka):
    kafka.has_run("nest-camera-status", 5, mode="update", committed=1)
    kafka.write("nest-camera-status", b"{}", key=b'{"device_id":"a"}')
    found = explained(kafka, "a", table="nest-camera-status")
    assert (found.counted.count + found.repeated.count, found.late.count) == (3, 0)


@pytest.mark.parametrize("device_id", [5, ["a"], {"a": 1}, None])
def test_a_camera_s_key_of_another_type_is_that_of_no_row(kafka, device_id):
    kafka.write("nest-camera-status", None, key="none")
    kafka.has_run("nest-camera-status", 5, mode="update", committed=1)
    with pytest.raises(StreamgaugeError, match="there is no row"):
        explained(kafka, json.dumps({"device_id": device_id}), table="nest-camera-status")


def test_no_more_are_listed_than_asked_for_and_the_numbers_are_whole(kafka):
    found = explained(kafka, "window=2026-01-01T10", limit=1)
    assert (found.late.count, offsets(found.late)) == (2, [3])


def test_what_a_person_reads_and_what_a_program_reads(kafka):
    console = Console(width=200, file=io.StringIO(), soft_wrap=True)
    show(found := explained(kafka, "window=2026-01-01T10"), console)
    text = console.file.getvalue()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "nest-logs-0 offset 1 2026-01-01T15:00:00.000Z 2026-01-01T10:20:00.000Z 0 repeats nest-logs-0 offset 0" in lines
    assert (
        "nest-logs-0 offset 3 2026-01-01T15:00:00.000Z 2026-01-01T10:59:00.000Z 3 11 min behind the watermark 2026-01-01T11:10:00Z" in lines
    )
    assert (
        lines[-1] == "1 counted, 1 repeated, 2 too late, of 5 records that were read: these give the expected row; and the topic holds it."
    )
    read = json.loads(as_json(found))
    assert json.loads(as_json(replace(found, found={"count": 2**70}))) == read | {"found": {"count": 2**70}}
    assert (read["kind"], read["late"]["count"], read["late"]["first"][0]["watermark"]) == ("equal", 2, "2026-01-01T11:10:00Z")


def test_several_rows_that_fit_are_listed(kafka):
    with pytest.raises(SeveralRows, match="2 rows fit; name one of them by more of its key") as several:
        explained(kafka, "zip_code=unknown")
    assert [key.decode() for key in several.value.keys] == sorted([TEN, TEN.replace("T11", "T12").replace("T10", "T11")])


@pytest.mark.parametrize(
    ("key", "what"),
    [
        (["zip_code=unknwon"], "no row has zip_code=unknwon; the nearest: unknown"),
        (["2026-01-02"], "no row has 2026-01-02; the nearest: 2026-01-01T1"),
        (["zip=94016"], "no key column zip; there are zip_code, window"),
        ([TEN.replace("unknown", "94016")], "there is no row .*94016.*, and none should be there"),
        (["{broken"], "is not JSON"),
    ],
)
def test_a_key_that_fits_no_row_is_one_line(kafka, key, what):
    with pytest.raises(StreamgaugeError, match=what):
        explained(kafka, *key)


def test_a_row_whose_records_retention_has_deleted_is_one_line(kafka, monkeypatch):
    def cut(cluster, partitions):
        return {
            partition: (5, end) if partition[0] == "nest-logs" else (0, end)
            for partition, (_, end) in first_and_end_offsets(cluster, partitions).items()
        }

    monkeypatch.setattr("audit.reading.read_range.first_and_end_offsets", cut)
    with pytest.raises(StreamgaugeError, match="no record is left: retention has cut nest-logs-0"):
        explained(kafka, "2026-01-01T10")


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("nest-archive", "no audited result table nest-archive; there are .*nest-camera-stats"),
        ("nest-crowds", "nest-crowds has not run with"),
    ],
)
def test_a_table_that_is_none_or_has_not_run_is_one_line(kafka, monkeypatch, table, what):
    monkeypatch.setattr("infrastructure.settings.Settings.from_environment", lambda: kafka.settings)
    assert re.search(what, str(CliRunner().invoke(app, ["why", table, "x"]).exception))


def test_the_command_ends_with_1_for_a_wrong_row(kafka, monkeypatch):
    monkeypatch.setattr("infrastructure.settings.Settings.from_environment", lambda: kafka.settings)
    assert CliRunner().invoke(app, ["why", STATS, "2026-01-01T10"]).exit_code == 0
    kafka.write_count("unknown", 2, 10)
    found = CliRunner().invoke(app, ["why", STATS, "window=2026-01-01 10:00", "--format", "json", "--limit", "0"])
    assert (found.exit_code, json.loads(found.stdout)["late"]) == (1, {"count": 2, "first": []})


def test_a_narrow_terminal_cuts_no_time(kafka):
    console = Console(file=io.StringIO(), width=80)
    show(explained(kafka, "window=2026-01-01T10"), console)
    text = console.file.getvalue()
    assert "\u2026" not in text
    assert "nest-logs-0 offset 0  2026-01-01T15:00:00.000Z  2026-01-01T10:20:00.000Z  0" in text
