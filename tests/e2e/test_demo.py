"""`streamgauge demo`: starts, shows, ends in time, leaves no orphan, goes on where it was."""

import signal
import socket
import subprocess
import sys

import psutil
import pytest
from confluent_kafka import KafkaException
from plain import read_topic, results
from running import alive, below, environment, eventually, settings_on_free_ports, streamgauge_process

from contract.process.waiting import SERVER_STOP_SECONDS, STOP_SECONDS
from streamgauge.platform.platform import NAME_WIDTH

PARTS = ("Kafka", "schema registry", "pipeline", "produce-nest", "produce-taxi", "produce-wikimedia", "dashboard")
RESULTS = ("nest-camera-stats", "taxi-borough-stats", "wikimedia.processed", "wikimedia-wiki-stats")


@pytest.fixture
def idle(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


def start_demo(settings, *arguments, **variables):
    output = (settings.home.parent / "demo.out").open("a")
    return subprocess.Popen(
        [sys.executable, "-m", "streamgauge.cli", "demo", *arguments], env=environment(settings, **variables), stdout=output, stderr=output
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


def test_killed_with_9_it_leaves_no_orphan_and_the_next_start_goes_on(idle):
    demo = start_demo(idle, "--no-dashboard")
    before = eventually(has_rows(idle), "the first row in the result topic")
    children = below(demo.pid)
    demo.kill()
    demo.wait()
    eventually(lambda: not alive(children), "every child of the killed demo to end")

    again = start_demo(idle, "--no-dashboard")
    try:
        after = eventually(
            lambda: (now := has_rows(idle)()) and sum(now.values()) > sum(before.values()) and now,
            "the second demo to count on",
        )
        assert all(after[key] >= count for key, count in before.items()), "a count of the first demo was lost"
    finally:
        again.terminate()
        assert again.wait() == 0


def test_it_ends_by_itself_after_so_many_seconds(idle):
    done = streamgauge_process("demo", "--no-dashboard", "--for", "12", settings=idle)
    assert done.returncode == 0, done.stderr
    assert "events in" in done.stderr
    assert "stopped; the next start goes on from here" in done.stderr


def test_a_taken_port_of_the_dashboard_is_one_line_before_anything_starts(idle):
    with socket.create_server(("127.0.0.1", idle.dashboard_port)):
        done = streamgauge_process("demo", settings=idle)
    assert done.returncode == 2
    assert f"port {idle.dashboard_port} on 127.0.0.1 is taken" in done.stderr
    assert "STREAMGAUGE_DASHBOARD_PORT" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (idle.home / "kafka").exists(), "the port was looked at after the broker was started"


def test_whatever_is_killed_comes_back_by_itself_and_it_ends_in_time_and_leaves_nothing(idle):
    demo = start_demo(idle)
    try:
        is_ready = ready_lines(idle)
        eventually(lambda: len(set(is_ready())) == len(PARTS), "every part to be ready")
        eventually(lambda: without_rows(idle) == [], "a row in each domain's result topics")
        for process in psutil.Process(demo.pid).children():  # the guard too
            process.kill()
        eventually(lambda: all(is_ready().count(part) >= 2 for part in PARTS), "every part to be ready again")
        counted = sum(results(idle).values())
        eventually(lambda: sum(results(idle).values()) > counted, "the count to go on")
        children = below(demo.pid)
        assert len(alive(children, "java")) >= 3, "a broker, a schema registry and a Spark driver were expected"
    finally:
        demo.send_signal(signal.SIGINT)
        # Nothing is killed: what has a batch to finish, or records to be acknowledged, has finished.
        assert demo.wait(STOP_SECONDS + SERVER_STOP_SECONDS) == 0
    assert alive(children) == []


def ready_lines(settings):
    """Gives the parts that have been ready since the demo's start, by its lines: "  12 s  dashboard          http://127.0.0.1:8501"."""

    def parts():
        lines = [line.partition(" s  ")[2] for line in (settings.home.parent / "demo.out").read_text().splitlines()]
        names = [line[:NAME_WIDTH].strip().replace("Kafka broker", "Kafka") for line in lines]
        return [name for name in names if name in PARTS]

    return parts
