"""What the demo does with a part that ends: real processes, and a clock that the test sets."""

import errno
import sys

import pytest
from running import eventually

from infrastructure.errors import StreamgaugeError
from streamgauge.demo.supervision import BACK_OFF_SECONDS, REFUSED_STARTS, STEADY_SECONDS, Supervised
from streamgauge.platform.processes import GuardedProcess

FOR_EVER = "import time; time.sleep(600)"


class Program:
    """A part that runs a line of Python. It has done something as soon as it has been started."""

    name, does = "program", "works"

    def __init__(self, folder, code):
        self.last_log, self.code, self.starts, self.refusal = folder / "program.out", code, 0, None
        self.process = None

    def start(self):
        if self.refusal:
            raise self.refusal
        self.starts += 1
        self.process = GuardedProcess.start([sys.executable, "-c", self.code], log=self.last_log, grace_seconds=0.5)

    def ask_to_stop(self):
        self.process.ask_to_stop()

    @property
    def exit_code(self):
        return self.process.exit_code

    def measure(self):
        return self.starts


class Clock:
    """Stands still until it is moved."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def said():
    return []


@pytest.fixture
def supervised(tmp_path, clock, said):
    """Makes a supervised program of a line of Python, started; it is stopped in the end."""
    made = []

    def make(code):
        made.append(Supervised(Program(tmp_path, code), said.append, clock))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.part.process.stop()


def test_what_waits_starts_after_its_time_or_as_soon_as_it_need_not_wait(tmp_path, clock, said):
    one, other = (Supervised(Program(tmp_path, FOR_EVER), said.append, clock) for _ in range(2))
    for waiting in (one, other):
        waiting.start_in(60)
        assert (waiting.look(), waiting.part.starts) == (False, 0)
    one.wait_no_longer()
    assert [(waiting.look(), waiting.part.starts) for waiting in (one, other)] == [(False, 1), (False, 0)]
    clock.now = 60
    one.wait_no_longer()
    assert [(waiting.look(), waiting.part.starts) for waiting in (one, other)] == [(True, 1), (False, 1)]
    for waiting in (one, other):
        waiting.part.process.stop()


def seen_to_end(one, said):
    """Looks until the end of its process has been noticed; returns what was said of it."""
    before = len(said)
    eventually(lambda: (one.look(), len(said) > before)[1], "the end to be noticed")
    return said[-1]


def test_it_is_started_again_after_1_2_4_and_at_last_30_seconds(supervised, clock, said):
    one = supervised("raise SystemExit(3)")
    for starts, seconds in enumerate((1, 2, 4, 8, 16, BACK_OFF_SECONDS, BACK_OFF_SECONDS), 1):
        assert seen_to_end(one, said) == f"program ended (exit code 3); it is started again in {seconds} s"
        clock.now += seconds - 0.1
        one.look()
        assert one.part.starts == starts, f"it was started before {seconds} s had passed"
        clock.now += 0.1
        one.look()
        assert one.part.starts == starts + 1, f"it was not started when {seconds} s had passed"


def test_a_part_that_was_started_before_is_watched_and_not_started_twice(tmp_path, clock, said):
    program = Program(tmp_path, FOR_EVER)
    program.start()
    one = Supervised(program, said.append, clock)
    one.watch()
    one.look()
    assert (program.starts, said) == (1, [])
    program.process.popen.kill()
    assert seen_to_end(one, said) == "program was ended by SIGKILL; it is started again in 1 s"


def test_the_line_says_why_in_the_words_of_its_log(supervised, said):
    one = supervised("import sys; sys.exit('error: SPARK_MASTER is nonsense')")
    assert seen_to_end(one, said) == "program ended (exit code 1: SPARK_MASTER is nonsense); it is started again in 1 s"


def test_a_kill_is_called_one(supervised, said):
    one = supervised(FOR_EVER)
    one.part.process.popen.kill()
    assert seen_to_end(one, said) == "program was ended by SIGKILL; it is started again in 1 s"


def test_an_exit_code_that_is_of_no_signal_is_told_as_it_is(supervised, said):
    one = supervised("import sys; print('out of order'); sys.exit(255)")
    assert seen_to_end(one, said) == "program ended (exit code 255: out of order); it is started again in 1 s"


def test_after_a_minute_without_an_end_the_next_is_the_first_again(supervised, clock, said):
    one = supervised("raise SystemExit(3)")
    for _ in range(3):
        seen_to_end(one, said)
        clock.now += BACK_OFF_SECONDS
        one.look()
    one.part.process.wait()
    clock.now += STEADY_SECONDS + 1
    assert seen_to_end(one, said).endswith("in 1 s")


def test_it_is_ready_once_for_each_start(supervised, clock, said):
    one = supervised(FOR_EVER)
    assert [one.look(), one.look()] == [True, False]
    one.part.process.stop()
    seen_to_end(one, said)
    assert not one.is_ready
    clock.now += 1
    one.look()
    assert [one.look(), one.look()] == [True, False]


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (StreamgaugeError("port 1 is taken"), "port 1 is taken"),
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "Resource temporarily unavailable"),
    ],
    ids=["by another program", "by the system"],
)
def test_a_start_that_is_refused_is_tried_again_and_then_ends_it_all(supervised, clock, said, refusal, told):
    one = supervised("raise SystemExit(3)")
    seen_to_end(one, said)
    one.part.refusal = refusal
    for _ in range(REFUSED_STARTS - 1):
        clock.now += BACK_OFF_SECONDS
        one.look()
        assert said[-1].startswith(f"program cannot be started: {told}; ")
    clock.now += BACK_OFF_SECONDS
    with pytest.raises(type(refusal), match=told):
        one.look()


def test_a_part_that_is_paused_stays_away_until_it_is_resumed(supervised, clock):
    one = supervised(FOR_EVER)
    one.pause()
    eventually(lambda: one.part.exit_code is not None, "the part to end")
    clock.now += 10 * BACK_OFF_SECONDS
    one.look()
    assert one.part.starts == 1
    one.resume()
    one.look()
    assert one.part.starts == 2
