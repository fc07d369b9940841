"""`streamgauge demo`: starts, shows, ends in time, leaves no orphan, goes on where it was."""

import signal
import socket
import subprocess
from dataclasses import replace

import awkward
import psutil
import pytest
from confluent_kafka import KafkaException
from plain import read_topic, results
from running import alive, below, environment, eventually, few_rows, settings_on_free_ports, start_server, streamgauge_process, verify

from infrastructure.settings import Settings
from streamgauge.demo.services import STOP_SECONDS
from streamgauge.platform import server
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.platform import NAME_WIDTH

PARTS = ("Kafka", "schema registry", "pipeline", "produce-nest", "produce-taxi", "produce-wikimedia", "audit", "dashboard")
RESULTS = ("nest-camera-stats", "taxi-borough-stats", "wikimedia.processed", "wikimedia-wiki-stats")


@pytest.fixture
def idle(tmp_path):
    return settings_on_free_ports(tmp_path / "home")


def start_demo(settings, checkout):
    output = (settings.home.parent / "demo.out").open("a")
    variables = environment(settings, **checkout.variables)
    return subprocess.Popen([*checkout.command, "demo"], cwd=checkout.traps, env=variables, stdout=output, stderr=output)


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


def test_it_ends_by_itself_after_so_many_seconds(idle):
    done = streamgauge_process("demo", "--no-dashboard", "--no-audit", "--only", "nest", "--for", "1", settings=idle)
    assert done.returncode == 0, done.stderr
    assert "events in" in done.stderr
    assert "stopped; the next start continues from here" in done.stderr


def test_a_taken_port_of_the_dashboard_is_one_line_before_anything_starts(idle):
    with socket.create_server(("127.0.0.1", idle.dashboard_port)):
        done = streamgauge_process("demo", settings=idle)
    assert done.returncode == 2
    assert f"port {idle.dashboard_port} on 127.0.0.1 is taken" in done.stderr
    assert "STREAMGAUGE_DASHBOARD_PORT" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (idle.home / "kafka").exists(), "the port was looked at after the broker was started"


def test_whatever_is_killed_comes_back_and_a_killed_demo_goes_on_at_its_next_start(tmp_path):
    """In a checkout and a home whose paths have special characters, and a folder whose modules have the names of ours."""
    own = replace(settings_on_free_ports(tmp_path / awkward.NAME / awkward.HOME), real_time=Settings().real_time)
    idle = few_rows(replace(own, cache=awkward.cache(tmp_path, own.cache)))
    checkout = awkward.checkout(tmp_path / "checkouts")
    own.home.parent.mkdir()
    demo, is_ready = start_demo(idle, checkout), ready_lines(idle)
    try:
        eventually(lambda: len(set(is_ready())) == len(PARTS), "every part to be ready")
        eventually(lambda: without_rows(idle) == [], "a row in each domain's result topics")
        for process in psutil.Process(demo.pid).children():  # the guard too
            process.kill()
        eventually(lambda: all(is_ready().count(part) >= 2 for part in PARTS), "every part to be ready again")
        counted = results(idle)
        eventually(lambda: sum(results(idle).values()) > sum(counted.values()), "the count to go on")
        children = below(demo.pid)
    finally:
        demo.kill()
        demo.wait()
    eventually(lambda: not alive(children), "every child of the killed demo to end")

    again = start_demo(idle, checkout)
    try:
        kept = eventually(has_rows(idle), "the rows of the first demo")
        assert all(kept[key] >= count for key, count in counted.items()), "a count of the first demo was lost"
        eventually(lambda: sum(results(idle).values()) > sum(kept.values()), "the second demo to count on")
        children = below(again.pid)
        assert len(alive(children, "java")) >= 3, "a broker, a schema registry and a Spark driver were expected"
    finally:
        again.send_signal(signal.SIGINT)
        # Nothing is killed: what has a batch to finish, or records to be acknowledged, has finished.
        assert again.wait(STOP_SECONDS + server.STOP_SECONDS) == 0
    eventually(lambda: not alive(children), "every child of the stopped demo to end: Spark's Python does so when it finds the JVM gone")

    kafka = EmbeddedKafka(idle)
    start_server(kafka)
    outcome = verify("nest-camera-stats", settings=idle)["nest-camera-stats"]
    kafka.stop()
    assert (outcome["verdict"], outcome["problem"]) == ("right", None), outcome["differences"]


def ready_lines(settings):
    """Gives the parts that have been ready since the demo's start, by its lines: "  12 s  dashboard          http://127.0.0.1:8501"."""

    def parts():
        lines = [line.partition(" s  ")[2] for line in (settings.home.parent / "demo.out").read_text().splitlines()]
        names = [line[:NAME_WIDTH].strip().replace("Kafka broker", "Kafka") for line in lines]
        return [name for name in names if name in PARTS]

    return parts
