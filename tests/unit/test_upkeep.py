"""Upkeep of the demo: a command once an hour, and nothing in between."""

import pytest
from running import eventually

from infrastructure.settings import Settings
from streamgauge.demo import upkeep as module
from streamgauge.demo.upkeep import EVERY_SECONDS, FIRST_SECONDS, Upkeep


@pytest.fixture
def hours(tmp_path, monkeypatch):
    """An Upkeep of `python -c CODE` whose clock the test sets; what it says is in `said`."""

    class Hours:
        now = 0.0

        def __init__(self):
            self.said = []

        def task(self, code):
            monkeypatch.setattr(module, "COMMAND", (module.COMMAND[0], "-c", code))
            return Upkeep(["task"], Settings(home=tmp_path), self.said.append, clock=lambda: self.now)

        def finished(self, task):
            def has_ended():
                task.look()
                return task.process is None

            eventually(has_ended, "the round to end")

    return Hours()


def test_the_first_round_begins_after_a_while_and_the_next_an_hour_later(hours, tmp_path):
    task = hours.task(f"open({str(tmp_path / 'rounds')!r}, 'a').write('x')")
    rounds = []
    for now in (0, FIRST_SECONDS - 1, FIRST_SECONDS, FIRST_SECONDS + EVERY_SECONDS - 1, FIRST_SECONDS + EVERY_SECONDS):
        hours.now = now
        task.look()
        hours.finished(task)
        rounds.append(len((tmp_path / "rounds").read_text()) if (tmp_path / "rounds").exists() else 0)
    assert rounds == [0, 0, 1, 1, 2]
    assert hours.said == []


def test_a_round_that_fails_is_said_with_its_last_line(hours):
    task = hours.task("raise SystemExit('error: Kafka is away')")
    hours.now = FIRST_SECONDS
    task.look()
    hours.finished(task)
    assert hours.said == ["task failed: Kafka is away; it is tried again in an hour"]


def test_a_round_that_is_due_waits_for_another_command(hours):
    task = hours.task("")
    hours.now = FIRST_SECONDS
    task.look(may_start=False)
    assert task.process is None
    task.look(may_start=True)
    assert task.process is not None
    hours.finished(task)


def test_a_round_that_the_system_does_not_start_is_said_and_tried_again(hours, tmp_path):
    (tmp_path / "logs").touch()  # where the folder of the logs is to be
    task = hours.task("")
    hours.now = FIRST_SECONDS
    task.look()
    assert task.process is None
    (line,) = hours.said
    assert line.startswith(f"task cannot be started: cannot use {tmp_path / 'logs'}")
    assert line.endswith("it is tried again in an hour")
