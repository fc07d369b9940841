"""`streamgauge query` and `maintain`, as far as they come without Spark."""

import signal
import subprocess
import sys

import psutil
import pytest
from object_store import CREDENTIALS
from running import environment, eventually, streamgauge

from streamgauge.settings import Settings


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "lake" / "nest" / "cameras" / "_spark_metadata").mkdir(parents=True)
    return Settings(home=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("query", "select 1", "--format", "xml"), "--format xml; expected one of table, csv, json"),
        (("maintain", "trips"), "no table trips; there are nest_cameras"),
        (("maintain", "--retain", "a while"), "--retain is 'a while'; expected a duration above zero"),
        (("maintain", "--every", "never"), "--every is 'never'; expected a duration above zero"),
        (("maintain", "--retain", "2 hours"), "--retain '2 hours' is below 7 days. What it deletes cannot be had back: time travel"),
        (("maintain", "--retain", "2 hours", "--every", "1 hour"), "streams that read the table"),
    ],
)
def test_a_wrong_word_gets_one_clear_line(settings, arguments, message):
    done = streamgauge(*arguments, settings=settings)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command", ["query", "maintain"])
def test_without_a_table_they_say_what_to_run_first(tmp_path, command):
    done = streamgauge(command, settings=Settings(home=tmp_path / "new"))
    assert done.returncode == 2
    assert "no tables yet in" in done.stderr
    assert "streamgauge run" in done.stderr


def test_a_parquet_archive_is_left_alone_and_costs_no_spark(settings):
    done = streamgauge("maintain", settings=settings)
    assert done.returncode == 0, done.stderr
    assert "nest_cameras (parquet): left alone; only Delta tables are compacted" in done.stdout
    assert not (settings.logs / "spark.log").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_on_a_timer_it_works_in_processes_that_come_and_go(settings, number):
    command = [sys.executable, "-m", "streamgauge.cli", "maintain", "--every", "1 second"]
    with subprocess.Popen(command, env=environment(settings), stdout=subprocess.PIPE, text=True) as timer:
        rounds = set()

        def two_rounds():
            rounds.update(child.pid for child in psutil.Process(timer.pid).children())
            return len(rounds) > 1

        eventually(two_rounds, "a second round")
        timer.send_signal(number)
        said = timer.communicate(timeout=10)[0]
    assert timer.returncode == 0
    assert "nest_cameras (parquet): " in said
    assert not any(psutil.pid_exists(pid) for pid in rounds)


def test_on_a_timer_it_outlives_a_store_that_is_away(tmp_path):
    away = {"LAKE_URI": "s3a://bucket/lake", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1", **CREDENTIALS}
    command = [sys.executable, "-m", "streamgauge.cli", "maintain", "--every", "0.1 seconds"]
    log = tmp_path / "said.txt"
    with log.open("w") as said, subprocess.Popen(command, env=environment(Settings(home=tmp_path), **away), stderr=said) as timer:
        told = "error: LAKE_URI=s3a://bucket/lake cannot be reached at http://127.0.0.1:9"
        eventually(lambda: log.read_text().count(told) > 1 or timer.poll() is not None, "a second attempt")
        assert timer.poll() is None, f"it has ended: {log.read_text()}"
        timer.send_signal(signal.SIGTERM)
    assert timer.returncode == 0, log.read_text()
