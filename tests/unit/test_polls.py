"""What the dashboard asks Kafka every few seconds: no error ends it, and only answers count."""

from running import eventually

from dashboard.reading import polls
from infrastructure.errors import StreamgaugeError


def test_only_what_kafka_answers_is_a_poll(monkeypatch):
    answers = [False, True, False]

    class Ends:
        def __init__(self, _):
            self.ends = {"nest-logs-0": 7}  # they stay while Kafka is away

        def ask(self, _):
            return answers.pop() if answers else False

    monkeypatch.setattr(polls, "TopicEnds", Ends)
    monkeypatch.setattr(polls, "ENDS_SECONDS", 0.01)
    ends = polls.SourceEnds("kafka")
    eventually(lambda: not answers, "Kafka to be asked three times")
    ends.stop()
    assert [found for _, found in ends.polls] == [{"nest-logs-0": 7}]


def test_a_thread_outlives_errors_of_any_kind():
    errors = [StreamgaugeError("no Kafka answers"), ValueError("a bug")]

    def ask():
        if errors:
            raise errors.pop()
        return "an answer"

    polled = polls.Polled("test", 0.01, ask, "nothing yet")
    eventually(lambda: polled.answer == "an answer", "the thread to ask again")
    polled.stop()
