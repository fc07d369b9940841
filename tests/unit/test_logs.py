"""`streamgauge logs`: of which part, how much, and what is added while one looks."""

import signal
import subprocess
import sys

import pytest
from messages import absent
from running import environment, one_line_error, settings_on_free_ports, streamgauge

from streamgauge.platform.log_file import Log


@pytest.fixture
def settings(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


def write(settings, name, text):
    settings.logs.mkdir(parents=True, exist_ok=True)
    with (settings.logs / name).open("a", newline="") as log:
        log.write(text)


def test_without_logs_it_is_one_line_that_says_what_writes_them(settings):
    assert absent(one_line_error(streamgauge("logs", settings=settings)), str(settings.logs), "`streamgauge demo`") == []


def test_a_part_that_is_not_there_is_one_line_with_those_that_are(settings):
    write(settings, "pipeline.out", "")
    write(settings, "kafka.log", "")
    assert "no log of pipelin; there are kafka, pipeline" in one_line_error(streamgauge("logs", "pipelin", settings=settings))


def test_the_last_lines_of_one_part_from_all_its_files(settings):
    write(settings, "kafka.log", "".join(f"{number}\n" for number in range(9)))
    write(settings, "kafka.out", "printed\r\n\x1b[31mnot ended")
    write(settings, "pipeline.out", "of another\n")
    assert streamgauge("logs", "kafka", "--lines", "2", settings=settings).stdout.splitlines() == [
        "7", "8", "printed", "\N{REPLACEMENT CHARACTER}[31mnot ended",
    ]  # fmt: skip


def test_of_all_parts_each_line_has_its_part(settings):
    write(settings, "kafka.log", "one\n")
    write(settings, "produce-wikimedia.out", "two\n")
    assert streamgauge("logs", settings=settings).stdout.splitlines() == ["kafka              | one", "produce-wikimedia  | two"]


def test_lines_that_are_added_follow_also_after_the_log_was_renamed_and_of_logs_that_are_new(settings):
    write(settings, "pipeline.out", "before\nlast\nhal")
    command = [sys.executable, "-m", "streamgauge.cli", "logs", "--follow", "--lines", "1"]
    with subprocess.Popen(command, env=environment(settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:

        def following():
            return process.stdout.readline().partition("| ")[2]

        assert following() == "last\n"
        write(settings, "pipeline.out", "f of it\n")
        assert following() == "half of it\n"
        write(settings, "pipeline.out", "the last of it\nnot ended")
        (settings.logs / "pipeline.out").rename(settings.logs / "pipeline.out.1")
        write(settings, "pipeline.out", "in the new one\n")
        assert [following() for _ in range(3)] == ["the last of it\n", "not ended\n", "in the new one\n"]
        write(settings, "dashboard.out", "first\nsecond\n")
        assert (following(), following()) == ("first\n", "second\n")
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate()
    assert (process.returncode, rest, said) == (0, "", "")


def test_a_log_that_is_emptied_in_its_place_is_read_from_its_start(tmp_path):
    path = tmp_path / "kafka.log"
    path.write_text("before\nnot ended")
    log = Log(path)
    assert list(log.lines()) == ["before"]
    path.write_text("after\n")
    assert list(log.lines()) == ["not ended", "after"]
