"""The same archive as a Delta table and as Parquet files, by readers that are not Spark."""

import json
from collections import Counter
from datetime import UTC, datetime

import deltalake
import duckdb
import pandas as pd
import pytest
from plain import one_camera, read_topic, write_topic
from running import streamgauge
from verifying import run_once, verified

pytestmark = pytest.mark.delta

BOTH = ("nest-archive", "nest-archive-delta")
START = datetime(2026, 1, 1, tzinfo=UTC)


def reports(settings):
    """Partition, offset and device of every camera of every document."""
    return Counter(
        (message.partition(), message.offset(), camera["device_id"])
        for message in read_topic(settings, "nest-logs")
        for camera in json.loads(message.value())["devices"]["cameras"].values()
    )


def test_each_reader_has_each_row_once_and_a_row_that_was_deleted_is_missed(fresh):
    write_topic(fresh, "nest-logs", (one_camera(f"cam-{number % 50}", START) for number in range(400)))
    run_once(fresh, *BOTH)
    expected = reports(fresh)

    delta = deltalake.DeltaTable(fresh.lake / "nest" / "cameras_delta").to_pyarrow_table()
    assert Counter(delta.select(["partition", "offset", "device_id"]).to_pandas().itertuples(index=False, name=None)) == expected
    assert duckdb.sql('select count(*), count(distinct (partition, "offset", device_id)) from delta').fetchall() == [(400, 400)]

    files = [str(path) for path in (fresh.lake / "nest" / "cameras").rglob("*.parquet")]
    frame = pd.concat(pd.read_parquet(path, columns=["partition", "offset", "device_id"]) for path in files)
    assert Counter(frame.itertuples(index=False, name=None)) == expected

    right = verified(fresh, BOTH[1])
    assert (right.verdict, right.rows.equal) == ("right", 400)
    table = deltalake.DeltaTable(fresh.lake / "nest" / "cameras_delta")
    table.delete("device_id = 'cam-7'")
    wrong = verified(fresh, BOTH[1])
    assert (wrong.verdict, wrong.rows.missing) == ("wrong", 8)


@pytest.mark.parametrize(
    ("names", "told"),
    [("nest-archives", "no archive for STREAMGAUGE_DELTA_ARCHIVES nest-archives; there are nest-archive, taxi-archive, wikimedia-archive")],
)
def test_a_name_that_is_no_archive_is_one_clear_error(settings, tmp_path, names, told):
    done = streamgauge("run", settings=settings, STREAMGAUGE_HOME=str(tmp_path), STREAMGAUGE_DELTA_ARCHIVES=names)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_table_is_right_that_lacks_a_column_which_no_record_has_yet(fresh):
    write_topic(fresh, "nest-logs", [one_camera("cam-1", START)])
    run_once(fresh, BOTH[1])
    path = fresh.lake / "nest" / "cameras_delta"
    without = deltalake.DeltaTable(path).to_pyarrow_table().drop_columns(["software_version"])
    deltalake.write_deltalake(path, without, mode="overwrite", schema_mode="overwrite", partition_by=["date"])
    outcome = verified(fresh, BOTH[1])
    assert (outcome.verdict, outcome.rows.equal) == ("right", 1), outcome
