"""Archives against their records: rows of Parquet files and of Delta tables, each by the record that it comes from."""

import json
from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import deltalake
import orjson
import pyarrow as pa
import pytest
from auditing import TEN_MS, Kafka, compared_rows, loaded, read_range, records, result
from avro import V1, change, in_wire_format
from pyarrow import parquet

from audit.checks.archive import Files
from audit.recount.recount import Recount
from infrastructure.settings import Settings

AT_10 = "2026-01-01T10:00:00Z"
DOCUMENT = {
    "devices": {
        "cameras": {"c": {"is_online": True}},
        "thermostats": {
            "t": {"structure_id": "s", "last_connection": AT_10, "ambient_temperature_c": 20.5, "humidity": 40, "is_online": False},
            "broken": "on fire",
            "gone": None,
        },
        "doors": 3,
    }
}


def expected(query, *values):
    """The rows of the archive."""
    rows = result(query).facts
    return loaded(rows, *map(orjson.dumps, values)).database.sql(f"FROM {rows.name}").to_arrow_table()


def compared(query, lake, *values, end=None, since=None):
    """What is found of an archive: rows by kind, the first wrong records, faults; and what reads its files. since: the first offset of a part."""
    settings, archive, recount = Settings(lake_uri="", home=lake.parent), result(query), Recount()
    committed = read_range("nest-logs", len(values) if end is None else end, archive.files(settings))
    if since is not None:
        committed = replace(committed, first_offsets={("nest-logs", 0): since}, is_part=True)
    files = Files(archive, committed, recount.database)
    recount.load(files.facts, [records("nest-logs", *map(orjson.dumps, values))])
    counts, wrong = compared_rows(files, committed, recount.database)
    return counts, wrong, files.faults, files


def write_delta(lake, table, **options):
    deltalake.write_deltalake(str(lake / "nest" / "cameras_delta"), table, partition_by=["date"], **options)


def write_parquet(lake, table, name="cameras"):
    folder = lake / "nest" / name / "date=2026-01-01"
    folder.mkdir(parents=True)
    parquet.write_table(table.drop_columns(["date"]), folder / "part 0.parquet")
    log = lake / "nest" / name / "_spark_metadata"
    log.mkdir()
    path = (folder / "part 0.parquet").as_uri()
    (log / "0").write_text(f"v1\n{json.dumps({'path': path, 'action': 'add'})}")
    return Path(folder / "part 0.parquet")


def cameras(*hours):
    return [{"devices": {"cameras": {"c": {"is_online": True, "name": f"at {hour}"}}}} for hour in hours]


def test_all_devices_but_cameras_are_rows_each_whole():
    rows = expected("nest-devices-archive", DOCUMENT).to_pylist()
    assert Counter((row["device_type"], row["device_id"]) for row in rows) == Counter(
        [("thermostats", "t"), ("thermostats", "broken"), ("doors", None)]
    )
    (read,) = [row for row in rows if row["device_id"] == "t"]
    assert json.loads(read["device"]) == DOCUMENT["devices"]["thermostats"]["t"]
    assert (float(read["ambient_temperature_c"]), read["humidity"], read["is_online"], read["hvac_mode"]) == (20.5, 40, False, None)
    assert (read["last_connection"], read["date"]) == (datetime(2026, 1, 1, 10), date(2026, 1, 1))  # noqa: DTZ001 - as DuckDB has it


def test_a_device_is_compared_by_its_text(tmp_path):
    rows = expected("nest-devices-archive", DOCUMENT).to_pylist()
    lake = tmp_path / "lake"
    write_parquet(lake, pa.Table.from_pylist(rows), "devices")
    assert dict(compared("nest-devices-archive", lake, DOCUMENT)[0]) == {"equal": 3}
    assert dict(compared("nest-devices-archive", lake, {"devices": {**DOCUMENT["devices"], "doors": 4}})[0]) == {"equal": 2, "different": 1}


@pytest.mark.parametrize(("query", "write"), [("nest-archive", write_parquet), ("nest-archive-delta", write_delta)])
def test_what_an_archive_holds_lacks_and_has_too_much_is_told_by_record(query, write, tmp_path):
    lake = tmp_path / "lake"
    rows = expected("nest-archive", *cameras(1, 2, 3))
    write(lake, rows.slice(1, 2))
    counts, wrong, faults, files = compared(query, lake, *cameras(1, 2, 4))
    assert (dict(counts), faults) == ({"missing": 1, "equal": 1, "different": 1}, [])
    assert wrong == [("missing", ("nest-logs", 0, 0)), ("different", ("nest-logs", 0, 2))]
    assert ([row["name"] for row in files.rows_of(wrong[1][1])], files.rows_of(wrong[0][1])) == (["at 3"], [])


@pytest.mark.parametrize(("name", "sibling"), [("h?me", "home"), ("h*me", "home"), ("h[o]me", "home"), ("h\\{o}me", "home")])
def test_a_path_with_wildcards_is_that_path_alone(name, sibling, tmp_path):
    for home, hour in ((name, 1), (sibling, 2)):
        write_parquet(tmp_path / home / "lake", expected("nest-archive", *cameras(hour)))
    counts, _, faults, _ = compared("nest-archive", tmp_path / name / "lake", *cameras(1))
    assert (dict(counts), faults) == ({"equal": 1}, [])


@pytest.mark.parametrize(("query", "write"), [("nest-archive", write_parquet), ("nest-archive-delta", write_delta)])
def test_of_a_part_of_the_records_no_other_row_is_compared(query, write, tmp_path):
    lake = tmp_path / "lake"
    write(lake, expected("nest-archive", *cameras(1, 2, 3, 4)))
    found = [dict(compared(query, lake, *cameras(*names), since=1, end=3)[0]) for names in ((0, 2, 3, 0), (1, 0, 3, 4))]
    assert found == [{"equal": 2}, {"equal": 1, "different": 1}]


def test_a_delta_table_holds_what_its_log_has_not_removed_after_a_checkpoint_too(tmp_path):
    lake = tmp_path / "lake"
    for number in range(4):
        write_delta(lake, expected("nest-archive", *cameras(1, 2, 3, 4)).slice(number, 1), mode="append")
    table = deltalake.DeltaTable(str(lake / "nest" / "cameras_delta"))
    table.create_checkpoint()
    table.delete("name = 'at 2'")
    assert dict(compared("nest-archive-delta", lake, *cameras(1, 2, 3, 4))[0]) == {"equal": 3, "missing": 1}
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert dict(compared("nest-archive-delta", lake, *cameras(1, 2, 3, 4))[0]) == {"equal": 3, "missing": 1}


def test_files_that_are_gone_or_damaged_are_named_and_their_rows_are_missing(tmp_path):
    lake = tmp_path / "lake"
    path = write_parquet(lake, expected("nest-archive", *cameras(1)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    counts, _, faults, _ = compared("nest-archive", lake, *cameras(1))
    assert (dict(counts), faults) == ({"missing": 1}, [f"files of the table that are not readable, 1: {path}"])
    path.unlink()
    assert compared("nest-archive", lake, *cameras(1))[2] == [f"files of the table that are gone, 1: {path}"]


def test_an_archive_without_files_lacks_all_rows_and_rows_of_a_batch_under_way_may_be_missing(tmp_path):
    lake = tmp_path / "lake"
    assert dict(compared("nest-archive", lake, *cameras(1, 2))[0]) == {"missing": 2}
    assert dict(compared("nest-archive", lake)[0]) == {}


@pytest.mark.parametrize(("written", "verdict"), [(10, "right"), (11, "wrong")])
def test_a_time_that_duckdb_cannot_read_leaves_out_its_column_and_the_rest_is_compared(written, verdict, tmp_path, monkeypatch):
    own = json.loads(V1)
    fields = [{"name": "far", "type": {"type": "long", "logicalType": "timestamp-micros"}}, {"name": "number", "type": "long"}]
    text = json.dumps({**own, "fields": [*own["fields"], *fields]})
    monkeypatch.setattr("audit.domains.wikimedia.SchemaRegistry.schema", lambda *_: text)
    kafka = Kafka(tmp_path, topics=("wikimedia",))
    plain = json.dumps({**own, "fields": [*own["fields"], {**fields[0], "type": "long"}, fields[1]]})
    kafka.write("wikimedia", in_wire_format({**change(1, at=0), "far": -(2**62), "number": 10}, 7, plain))
    kafka.has_run("wikimedia-archive", 1, mode="append", committed=1, source="wikimedia")
    origin = {"kafka_topic": ["wikimedia"], "kafka_partition": [0], "kafka_offset": [0]}
    times = {"kafka_timestamp": [(TEN_MS + 5 * 3_600_000) * 1000], "changed_at": [0], "far": [-(2**62)]}
    columns = {**origin, **{name: pa.array(time, pa.timestamp("us")) for name, time in times.items()}, "number": [written]}
    folder = tmp_path / "lake" / "wikimedia" / "changes"
    path = folder / "date=1970-01-01" / "part.parquet"
    path.parent.mkdir(parents=True)
    parquet.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=True)
    (folder / "_spark_metadata").mkdir()
    (folder / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps({'path': path.as_uri(), 'action': 'add'})}")
    found = kafka.verdict("wikimedia-archive")
    assert (found.verdict, found.faults) == (verdict, [])
    assert "before the year -4713: far" in found.notes[0]


def with_column(table, name, *values):
    return table.set_column(table.schema.get_field_index(name), name, pa.array(values))


def verdict_on(kafka, lake, table, log=None):
    """The verdict on an archive of two cameras that holds the table. log: the text of its log, with PATH for that of the file."""
    kafka.write("nest-logs", *map(orjson.dumps, cameras(1, 2)), timestamp_ms=TEN_MS + 2 * 3_600_000)
    kafka.has_run("nest-archive", 2, mode="append", committed=1)
    path = write_parquet(lake, table)
    if log is not None:
        (lake / "nest" / "cameras" / "_spark_metadata" / "0").write_text(log.replace("PATH", path.as_uri()))
    return kafka.verdict("nest-archive")


@pytest.mark.parametrize(
    ("name", "values", "kinds"),
    [
        ("is_online", ("maybe", "true"), {"different": 1, "equal": 1}),
        ("is_audio_input_enabled", ("maybe", None), {"different": 1, "equal": 1}),
        ("reported_at", (0.5, 1.5), {"different": 2}),
        ("last_event", ("x", None), {"different": 1, "equal": 1}),
        ("offset", ("x", "1"), {"missing": 1, "extra": 1, "equal": 1}),
        ("offset", (None, 1), {"missing": 1, "extra": 1, "equal": 1}),
        ("partition", (2**40, 0), {"missing": 1, "extra": 1, "equal": 1}),
        ("topic", (None, "nest-logs"), {"missing": 1, "extra": 1, "equal": 1}),
    ],
)
def test_what_somebody_has_written_into_a_file_with_other_types_is_wrong(name, values, kinds, tmp_path):
    rows = expected("nest-archive", *cameras(1, 2))
    found = verdict_on(Kafka(tmp_path), tmp_path / "lake", with_column(rows, name, *values))
    assert (found.verdict, {kind: number for kind, number in found.rows.by_kind.items() if number and kind != "compared"}) == (
        "wrong",
        kinds,
    )


@pytest.mark.parametrize("log", ["v1\n[]", 'v1\n{"action":"add"}', 'v1\n{"path":5}', "v1\n{"])
def test_a_damaged_log_is_told_in_one_line(log, tmp_path):
    found = verdict_on(Kafka(tmp_path), tmp_path / "lake", expected("nest-archive", *cameras(1, 2)), log)
    assert (found.verdict, "is damaged" in found.problem) == ("not checked", True)
