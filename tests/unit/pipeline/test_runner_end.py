"""The queue of a runner, and how its run ends, without a JVM."""

import threading
import time
from functools import partial
from types import SimpleNamespace

from infrastructure.process.ports import free_ports
from infrastructure.process.stop_signals import StopRequest
from infrastructure.settings import Settings
from pipeline.running.query_life import State
from pipeline.running.runner import Runner


class KilledSpark:
    """Spark, whose JVM is killed as soon as a listener is added."""

    def __init__(self):
        self.streams = SimpleNamespace(addListener=lambda _: None, removeListener=self.refuse)

    @staticmethod
    def refuse(_):
        raise ConnectionRefusedError


def test_alerts_are_sent_to_the_last_also_when_sparks_jvm_has_been_killed(tmp_path):
    stop = StopRequest()
    stop.set()
    (port,) = free_ports(1)
    before = set(threading.enumerate())
    Runner(KilledSpark(), Settings(home=tmp_path, kafka_port=port), stop_requested=stop).run([])
    left = [thread.name for thread in threading.enumerate() if thread not in before]
    assert left == [], "the threads that send end when all that waited is sent"


def test_calls_that_came_while_a_start_waited_for_a_server_are_not_one_for_each_such_wait(tmp_path):
    runner, done = Runner(KilledSpark(), Settings(home=tmp_path)), []
    for number in range(3):
        runner._calls.put(partial(done.append, number))
    runner._execute_next(time.monotonic())
    assert done == [0, 1, 2]


def test_a_source_that_cannot_be_checked_keeps_no_other_from_being_checked(tmp_path):
    def check_source(query):
        if query == "unreadable":
            raise PermissionError(13, "Permission denied", "checkpoints/unreadable-v1-update.topics")
        return [("topic", 0), ("topic", 1)]

    runner, followed = Runner(KilledSpark(), Settings(home=tmp_path)), []
    names = ("unreadable", "readable")
    runner._lives = {name: SimpleNamespace(query=name, state=State.RUNNING, follow=followed.append) for name in names}
    runner._starter, runner._sources_due = SimpleNamespace(check_source=check_source), time.monotonic()
    runner._check_sources()
    runner._execute_calls()
    assert followed == [[("topic", 0), ("topic", 1)]]
