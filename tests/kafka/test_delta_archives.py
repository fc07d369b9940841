"""The same archive as a Delta table and as Parquet files, killed in the middle of its work, by readers that are not Spark."""

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

import deltalake
import duckdb
import pandas as pd
import psutil
import pytest
from plain import one_camera, read_topic, write_topic
from running import environment, eventually, streamgauge, streamgauge_here

from pipeline.checkpoint.contents import Checkpoint
from streamgauge.checkpoint_names import CheckpointName

BOTH = ("nest-archive", "nest-archive-delta")
START = datetime(2026, 1, 1, tzinfo=UTC)


def reports(settings):
    """Partition, offset and device of every camera of every document."""
    return Counter(
        (message.partition(), message.offset(), camera["device_id"])
        for message in read_topic(settings, "nest-logs")
        for camera in json.loads(message.value())["devices"]["cameras"].values()
    )


def test_killed_in_the_middle_each_reader_has_each_row_once(fresh):
    write_topic(fresh, "nest-logs", (one_camera(f"cam-{number % 50}", START) for number in range(4000)))
    batches = {"STREAMGAUGE_MAX_OFFSETS_PER_TRIGGER": "300"}
    checkpoint = Checkpoint(CheckpointName(BOTH[1], 1, "append").folder(fresh))
    with subprocess.Popen(
        [sys.executable, "-m", "streamgauge.cli", "run", *BOTH],
        env=environment(fresh, **batches, STREAMGAUGE_TRIGGER_SECONDS="0"),
        stderr=subprocess.DEVNULL,
    ) as pipeline:
        eventually(lambda: checkpoint.last_committed >= 0, "a batch of the Delta archive")
        for child in psutil.Process(pipeline.pid).children(recursive=True):
            child.kill()
        pipeline.kill()
    done = streamgauge_here("run", *BOTH, "--once", settings=fresh)
    assert done.returncode == 0, done.stderr
    expected = reports(fresh)

    delta = deltalake.DeltaTable(fresh.lake / "nest" / "cameras_delta").to_pyarrow_table()
    assert Counter(delta.select(["partition", "offset", "device_id"]).to_pandas().itertuples(index=False, name=None)) == expected
    assert duckdb.sql('select count(*), count(distinct (partition, "offset", device_id)) from delta').fetchall() == [(4000, 4000)]

    # Without Spark's log, what a batch had written when it was killed is there too: never fewer, and told apart by the record.
    folder = fresh.lake / "nest" / "cameras"
    files = [path for path in folder.rglob("*.parquet") if path.stat().st_size]
    frame = pd.concat(pd.read_parquet(path, columns=["partition", "offset", "device_id"]) for path in files)
    assert set(frame.itertuples(index=False, name=None)) == set(expected)
    ((rows,),) = duckdb.sql(
        f'select count(distinct (partition, "offset", device_id)) from read_parquet({[str(path) for path in files]})'
    ).fetchall()
    assert rows == 4000

    verified = json.loads(streamgauge_here("verify", *BOTH, "--format", "json", settings=fresh).stdout)
    assert [(one["query"], one["verdict"], one["rows"]["equal"]) for one in verified] == [(name, "right", 4000) for name in BOTH]
    table = deltalake.DeltaTable(fresh.lake / "nest" / "cameras_delta")
    table.delete("device_id = 'cam-7'")
    (wrong,) = json.loads(streamgauge_here("verify", BOTH[1], "--format", "json", settings=fresh).stdout)
    assert (wrong["verdict"], wrong["rows"]["missing"]) == ("wrong", 80)


@pytest.mark.parametrize(
    ("names", "told"), [("nest-archives", "names nest-archives; the archives are nest-archive, taxi-archive, wikimedia-archive")]
)
def test_a_name_that_is_no_archive_is_one_clear_error(settings, tmp_path, names, told):
    done = streamgauge("run", settings=settings, STREAMGAUGE_HOME=str(tmp_path), STREAMGAUGE_DELTA_ARCHIVES=names)
    assert done.returncode == 2
    assert done.stderr.startswith("error: STREAMGAUGE_DELTA_ARCHIVES ")
    assert told in done.stderr
