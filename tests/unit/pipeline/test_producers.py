"""Producers of Kafka's client whose thread has ended: what is open and what runs at each look, in; whether one has died, out."""

import pytest

from pipeline.monitoring.producers import ProducerWatch

THREAD = "Thread[kafka-producer-network-thread | producer-{},5,main]"
MBEAN = "kafka.producer:type=app-info,id=producer-{}"


def seen(*looks):
    """looks: (the producers that are open, those whose thread runs). Whether one has died, for each."""
    watch = ProducerWatch()
    text = [(str([MBEAN.format(one) for one in of]), str([THREAD.format(one) for one in running])) for of, running in looks]
    return [watch.look(of.replace("'", ""), running.replace("'", "")) for of, running in text]


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        ([("1", "1"), ("1", ""), ("1", "")], [False, False, True]),
        ([("12", "12"), ("12", "2"), ("12", "2"), ("12", "2")], [False, False, True, False]),
        ([("1", "1"), ("1", ""), ("", "")], [False, False, False]),
        ([("1", "1"), ("", ""), ("", "")], [False, False, False]),
        ([("1", ""), ("1", ""), ("1", "1")], [False, False, False]),
        ([("12", "12"), ("12", "2"), ("2", "2"), ("2", ""), ("", "")], [False] * 5),
    ],
    ids=["died", "one of two died", "being closed", "closed", "starts", "closed one after the other"],
)
def test_a_producer_has_died_if_it_is_open_and_its_thread_is_gone_at_two_looks(looks, found):
    assert seen(*looks) == found
