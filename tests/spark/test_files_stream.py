"""Files as a stream: in which order, how many at a time, and that a batch over them gives the same."""

import os
from dataclasses import replace

import pytest

from infrastructure.settings import Settings
from pipeline.sources.files import Files


@pytest.fixture
def landing(tmp_path):
    folder = tmp_path / r"landing [1] {a,b} *?\x"
    folder.mkdir()
    for hour, name in enumerate(["old [1]", "middle%20", "new"]):
        path = folder / f"{name}.json"
        path.write_bytes(b'{"line": 1}\n{"line": 2}\n')
        os.utime(path, (1_700_000_000 + hour * 3600,) * 2)
    return folder


@pytest.fixture
def batches(spark, landing, tmp_path):
    """Runs a stream over the folder; returns the lines of each batch, as (file, line)."""

    def run(**settings):
        seen = []

        def remember(batch, _):
            seen.append([(row.topic.rpartition("/")[2], row.offset) for row in batch.collect()])

        stream = Files(str(landing)).stream(spark, replace(Settings(), **settings))
        query = stream.writeStream.foreachBatch(remember).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
        return seen

    return run


def both_lines(*names):
    return [(f"{name}.json", line) for name in names for line in (1, 2)]


def test_all_at_once(batches):
    (seen,) = batches()
    assert sorted(seen) == sorted(both_lines("old [1]", "middle%20", "new"))


def test_so_many_at_a_time_the_oldest_first(batches):
    assert batches(max_files_per_trigger=1) == [both_lines("old [1]"), both_lines("middle%20"), both_lines("new")]


def test_the_newest_first(batches):
    assert batches(max_files_per_trigger=1, latest_first=True) == [both_lines("new"), both_lines("middle%20"), both_lines("old [1]")]


def test_a_file_a_year_behind_the_newest_one_is_read(batches, landing):
    assert len(batches()) == 1
    path = landing / "ancient.json"
    path.write_bytes(b"{}")
    os.utime(path, (1_660_000_000,) * 2)
    assert batches() == [[("ancient.json", 1)]]
