"""`streamgauge query` and `maintain`, as far as they come without Spark."""

import signal
import subprocess
import sys

import psutil
import pytest
from object_store import CREDENTIALS
from running import environment, eventually, one_line_error, streamgauge

from contract.settings import Settings


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "lake" / "nest" / "cameras" / "_spark_metadata").mkdir(parents=True)
    return Settings(home=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("maintain", "trips"), ("trips", "nest_cameras")),
        (("maintain", "--retain", "a while"), ("--retain is 'a while'", "duration")),
        (("maintain", "--every", "never"), ("--every is 'never'", "duration")),
        (("maintain", "--retain", "2 hours"), ("--retain '2 hours'", "7 days", "time travel", "streams", "--allow-short-retention")),
    ],
)
def test_a_wrong_word_gets_one_clear_line(settings, arguments, facts):
    line = one_line_error(streamgauge(*arguments, settings=settings, without_spark=True))
    assert [fact for fact in facts if fact not in line] == [], line


def test_the_shell_refuses_to_run_without_a_terminal(tmp_path):
    line = one_line_error(streamgauge("sql", settings=Settings(home=tmp_path)))
    assert "streamgauge query" in line


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


def test_on_a_timer_it_works_in_processes_that_come_and_go(settings):
    command = [sys.executable, "-m", "streamgauge.cli", "maintain", "--every", "0.1 seconds"]
    with subprocess.Popen(command, env=environment(settings), stdout=subprocess.PIPE, text=True) as timer:
        rounds = set()

        def two_rounds():
            rounds.update(child.pid for child in psutil.Process(timer.pid).children())
            return len(rounds) > 1

        eventually(two_rounds, "a second round")
        timer.send_signal(signal.SIGTERM)
        said = timer.communicate()[0]
    assert timer.returncode == 0
    assert "nest_cameras (parquet)" in said, "what the first round said"
    assert not any(psutil.pid_exists(pid) for pid in rounds)


def test_on_a_timer_it_outlives_a_store_that_is_away(tmp_path):
    away = {"LAKE_URI": "s3a://bucket/lake", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1", **CREDENTIALS}
    command = [sys.executable, "-m", "streamgauge.cli", "maintain", "--every", "0.1 seconds"]
    log = tmp_path / "said.txt"
    with log.open("w") as said, subprocess.Popen(command, env=environment(Settings(home=tmp_path), **away), stderr=said) as timer:
        eventually(lambda: log.read_text().count("http://127.0.0.1:9") > 1 or timer.poll() is not None, "a second attempt")
        assert timer.poll() is None, f"it has ended: {log.read_text()}"
        timer.send_signal(signal.SIGTERM)
    assert timer.returncode == 0, log.read_text()
