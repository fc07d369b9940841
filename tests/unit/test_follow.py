"""What follows topics goes on after errors. test_exporter.py has it with a broker."""

from contextlib import contextmanager

from infrastructure.errors import StreamgaugeError
from infrastructure.kafka import follow as following
from infrastructure.kafka.follow import Warnings, follow
from infrastructure.process.stop_signals import StopRequest


class Reader:
    """A reader without Kafka, which fails at a poll."""

    is_caught_up = True

    def __init__(self, polls):
        self._polls = iter(polls)

    def poll(self, _):
        if next(self._polls, None) == "gone":
            raise StreamgaugeError("gone")  # noqa: EM101 - Kafka's words
        return False

    def check_when_due(self):
        pass


def test_a_topic_is_opened_again_after_each_error_until_the_stop_is_requested(monkeypatch):
    monkeypatch.setattr(following, "RETRY_SECONDS", 0)
    said, stop, attempts = [], StopRequest(), iter([["away"], ["", "gone"], [""]])

    @contextmanager
    def opened():
        polls = next(attempts)
        if polls == ["away"]:
            raise StreamgaugeError("away")  # noqa: EM101 - Kafka's words
        yield Reader(polls)

    def look(_):
        said.append("read")
        if said.count("read") == 2:
            stop.set()

    follow([opened], look, stop, said.append)
    assert said == ["away", "read", "gone", "read"]


def test_a_warning_is_given_once_for_as_long_as_its_cause_lasts():
    said = []
    warnings = Warnings(said.append)
    for lines in (["a"], ["a", "b"], []):
        warnings.tell(lines)
    for line in ("a", "a"):
        warnings.add(line)
    assert said == ["a", "b", "a"]
