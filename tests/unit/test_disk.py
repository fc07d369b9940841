"""The demo on a disk that fills: it warns, stops its producers, and starts them again. The clock and the free space are the test's."""

import shutil
from types import SimpleNamespace

import pytest
from messages import absent

from infrastructure.process.logs import LOG_BYTES
from infrastructure.settings import Settings
from streamgauge.demo.disk import EASE_BYTES, LEAST_BYTES, LOOK_SECONDS, RESUME_BYTES, DiskSpace, most_bytes_of_topics
from streamgauge.platform import log_file
from streamgauge.platform.log_file import log_tail
from streamgauge.platform.processes import start_process


class Producer:
    is_paused = False

    def pause(self):
        self.is_paused = True

    def resume(self):
        self.is_paused = False


@pytest.fixture
def disk(monkeypatch, tmp_path):
    """A disk whose free space the test sets: `after_a_minute(free)` gives what was said, and whether the producer stands still."""
    now, said, producer = SimpleNamespace(seconds=0.0), [], Producer()
    watched = DiskSpace(Settings(home=tmp_path), [producer], said.append, clock=lambda: now.seconds)

    def after_a_minute(free):
        said.clear()
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
        watched.look()
        watched.look()  # nothing more within the minute
        now.seconds += LOOK_SECONDS
        return list(said), producer.is_paused

    return after_a_minute


def test_enough_space_says_nothing(disk):
    assert disk(EASE_BYTES) == ([], False)


def test_a_warning_comes_once_and_again_after_there_was_enough(disk):
    said, is_paused = disk(EASE_BYTES - 1)
    assert (len(said), is_paused) == (1, False)
    assert absent(said[0], "warning", "STREAMGAUGE_HOME", "1.0 GB") == []
    assert disk(LEAST_BYTES) == ([], False)
    disk(EASE_BYTES)
    assert len(disk(LEAST_BYTES)[0]) == 1


def test_a_disk_that_is_nearly_full_stops_the_producers_until_there_is_space(disk):
    said, is_paused = disk(LEAST_BYTES - 1)
    assert (len(said), is_paused) == (1, True)
    assert disk(RESUME_BYTES - 1) == ([], True), "it would start and stop them again and again"
    said, is_paused = disk(RESUME_BYTES)
    assert (len(said), is_paused) == (1, False)


def test_the_topics_have_a_bound():
    assert 5e9 < most_bytes_of_topics() < 15e9, "docs/machine.md says about 14 GB"


def test_the_output_of_a_process_is_rotated_at_its_start(tmp_path):
    log = tmp_path / "part.out"
    log.write_text("x" * (LOG_BYTES + 1))
    start_process(["true"], log).wait()
    assert (log.stat().st_size, (tmp_path / "part.out.1").stat().st_size) == (0, LOG_BYTES + 1)
    start_process(["true"], log).wait()
    assert (tmp_path / "part.out.1").exists(), "a short log was rotated"


def test_the_end_of_a_large_log_is_found_without_reading_it_whole(tmp_path):
    log = tmp_path / "part.out"
    log.write_text("é" * log_file.TAIL_BYTES + "\nlast but one\nlast\n")
    assert log_tail(log, 2) == "last but one\nlast"
