"""`streamgauge query` and `maintain`, as far as they come without Spark."""

import subprocess
import sys

import pytest
from running import environment, one_line_error, streamgauge

from contract.checkpoints.names import CheckpointName
from infrastructure.settings import Settings
from pipeline.checkpoint.use import locked
from pipeline.lake.maintenance import maintain_table
from pipeline.lake.tables import LakeTable


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "lake" / "nest" / "cameras" / "_spark_metadata").mkdir(parents=True)
    return Settings(home=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("maintain", "trips"), ("trips", "nest_cameras")),
        (("maintain", "--retain", "a while"), ("--retain is 'a while'", "duration")),
        (("maintain", "--retain", "2 hours"), ("--retain '2 hours'", "7 days", "time travel", "streams", "--allow-short-retention")),
    ],
)
def test_a_wrong_word_gets_one_clear_line(settings, arguments, facts):
    line = one_line_error(streamgauge(*arguments, settings=settings, without_spark=True))
    assert [fact for fact in facts if fact not in line] == [], line


def test_without_a_table_it_says_what_to_run_first(tmp_path):
    line = one_line_error(streamgauge("maintain", settings=Settings(home=tmp_path / "new"), without_spark=True))
    assert "streamgauge run" in line
    assert str(tmp_path / "new" / "lake") in line


def test_a_parquet_archive_is_left_alone_and_costs_no_spark(settings):
    done = streamgauge("maintain", settings=settings, without_spark=True)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("nest_cameras (parquet)")
    assert "Delta" in line
    assert not (settings.logs / "spark.log").exists()


MAINTAIN = """
import sys
from pathlib import Path
from infrastructure import lake_environment
from pipeline.lake.commands import maintain

lake_environment.PYTHON, lake_environment.HAS_DELTA = Path(sys.argv[1]), False
maintain()
"""


def test_what_it_says_of_parquet_tables_it_says_where_delta_is(settings, tmp_path):
    (settings.lake / "nest" / "cameras_delta" / "_delta_log").mkdir(parents=True)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho there\n")
    python.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", MAINTAIN, python], check=False, env=environment(settings), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "there\n")


def test_a_table_that_a_query_writes_is_skipped_if_files_of_the_batch_under_way_could_be_deleted(tmp_path):
    settings = Settings(home=tmp_path)
    table = LakeTable("nest_cameras_delta", settings.lake / "nest" / "cameras_delta", "delta")
    with locked(CheckpointName("nest-archive-delta", 1, "append").place(settings)):
        line = maintain_table(table, None, settings, 3599)
    assert line.startswith("nest_cameras_delta (delta): skipped: query nest-archive-delta is already running")
