"""When work on a timer comes next: what it says and does in, waits out."""

from contract.errors import StreamgaugeError
from contract.process.rounds import repeat


class Clock:
    """Stands for the event that ends the program: notes each wait, and is set at the last one."""

    def __init__(self, rounds):
        self.waits, self.rounds = [], rounds

    def wait(self, seconds):
        self.waits.append(seconds)
        return len(self.waits) > self.rounds


def waits_of(outcomes, seconds_between, *, at_once=True):
    """How long it waits before each round and after the last, and what it says. outcomes: what each round raises, None if nothing."""
    clock, said, left = Clock(len(outcomes)), [], list(outcomes)

    def work():
        if error := left.pop(0):
            raise error

    repeat(work, seconds_between, clock, said.append, at_once=at_once)
    return clock.waits, said


AWAY = StreamgaugeError("no Kafka answers")


def test_a_round_comes_every_so_often():
    assert waits_of([None, None], 3600) == ([0, 3600, 3600], [])
    assert waits_of([None], 3600, at_once=False) == ([3600, 3600], [])


def test_a_round_that_failed_does_not_wait_for_the_next_and_says_when_it_tries_again():
    waits, said = waits_of([AWAY, AWAY, None, AWAY], 3600)
    assert waits == [0, 10, 20, 3600, 10]
    assert said[:2] == ["error: no Kafka answers; next attempt in 10 s", "error: no Kafka answers; next attempt in 20 s"]


def test_what_stays_away_is_asked_no_more_often_than_rounds_come():
    assert waits_of([AWAY] * 5, 60)[0] == [0, 10, 20, 40, 60, 60]
    assert waits_of([AWAY], 5)[0] == [0, 5]
