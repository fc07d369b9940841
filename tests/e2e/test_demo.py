"""`streamgauge demo`: starts, shows, ends in time, leaves no orphan, goes on where it was."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from confluent_kafka import KafkaException
from plain import read_topic, results
from running import environment, eventually, settings_on_free_ports, streamgauge_process

END_SECONDS = 10
RESULTS = ("nest-camera-stats", "taxi-borough-stats", "wikimedia.processed", "wikimedia-wiki-stats")


@pytest.fixture
def idle(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


def start_demo(settings, *arguments):
    output = (settings.home.parent / "demo.out").open("a")
    return subprocess.Popen(
        [sys.executable, "-m", "streamgauge.cli", "demo", *arguments], env=environment(settings), stdout=output, stderr=output
    )


def has_rows(settings):
    def probe():
        try:
            return results(settings)
        except Exception:
            return {}

    return probe


def without_rows(settings):
    """The result topics that hold no record yet."""
    try:
        return [topic for topic in RESULTS if not read_topic(settings, topic)]
    except (KafkaException, KeyError) as error:
        return [str(error)]


def offspring(pid):
    return [child for child in psutil.Process(pid).children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]


def still_there(processes):
    return [f"{p.pid} {p.name()}" for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_time_and_leaves_nothing(idle, how):
    demo = start_demo(idle)
    eventually(lambda: without_rows(idle) == [], "a row in each story's result topics")
    children = offspring(demo.pid)
    assert len([child for child in children if child.name() == "java"]) >= 3, "a broker, a schema registry and a Spark driver were expected"
    asked = time.monotonic()
    demo.send_signal(how)
    assert demo.wait(30) == 0
    assert time.monotonic() - asked < END_SECONDS
    assert still_there(children) == []


def test_killed_with_9_it_leaves_no_orphan_and_the_next_start_goes_on(idle):
    demo = start_demo(idle, "--no-dashboard")
    before = eventually(has_rows(idle), "the first row in the result topic")
    children = offspring(demo.pid)
    demo.kill()
    demo.wait(10)
    eventually(lambda: not still_there(children), "every child of the killed demo to end")

    again = start_demo(idle, "--no-dashboard")
    try:
        after = eventually(
            lambda: (now := has_rows(idle)()) and sum(now.values()) > sum(before.values()) and now,
            "the second demo to count on",
        )
        assert all(after[key] >= count for key, count in before.items()), "a count of the first demo was lost"
    finally:
        again.terminate()
        again.wait(30)


def test_it_ends_by_itself_after_so_many_seconds(idle):
    done = streamgauge_process("demo", "--no-dashboard", "--for", "12", settings=idle)
    assert done.returncode == 0, done.stderr
    assert "events in" in done.stderr
    assert "stopped; the next start goes on from here" in done.stderr


def test_a_service_that_ends_ends_the_demo_with_its_log(idle):
    done = streamgauge_process("demo", "--for", "60", settings=idle, SPARK_MASTER="nonsense")
    assert done.returncode == 1
    assert "pipeline ended" in done.stderr
