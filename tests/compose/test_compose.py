"""docker-compose.yaml: everything comes up, the numbers are right, and what is killed comes back. In this order, on one stack."""

import json
import urllib.request
from datetime import UTC, datetime

import orjson
import pytest
from composed import left_over
from confluent_kafka import KafkaException
from plain import read_topic
from running import eventually
from sse_server import hold, serving

from contract.domains import TOPICS
from contract.settings import Settings
from producers.wikimedia.simulation import Simulation, simulate

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]
RESULTS = [topic.name for topic in TOPICS if topic.is_result]
SLOW_SECONDS = 600


def from_this_machine(stack):
    return Settings(kafka_bootstrap_servers=f"127.0.0.1:{stack.kafka_port}")


def empty_results(stack):
    try:
        return [topic for topic in RESULTS if not read_topic(from_this_machine(stack), topic)]
    except (KafkaException, KeyError) as error:
        return [str(error)]


def statuses(stack):
    done = stack.app("status", "--format", "json")
    return json.loads(done.stdout) if done.returncode == 0 else []


def test_the_file_is_clean(stack):
    done = stack.compose("config", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_result_topic_fills(stack):
    eventually(lambda: empty_results(stack) == [], "a row in every result topic, by the listener for this machine")


def test_the_dashboard_answers_on_loopback(stack):
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.dashboard_port}/", timeout=20) as answer:
        assert b"<title>Streamlit</title>" in answer.read()


def test_what_is_killed_comes_back_and_every_row_is_right(stack):
    stack.kill("pipeline")
    stack.kill("spark-worker")
    killed = datetime.now(UTC)

    def is_counting():
        found = statuses(stack)
        started_anew = found and all(datetime.fromisoformat(one["started_at"]) > killed for one in found)
        return started_anew and all(one["state"] in {"running", "idle"} for one in found)

    eventually(is_counting, "every query to run again")
    done = stack.app("verify")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Right: " in done.stdout


def test_commands_in_a_container_of_their_own(stack):
    report = json.loads(stack.app("report", "nest-camera-stats", "--format", "json").stdout)
    assert sum(row["count"] for row in report) > 0
    maintained = stack.app("maintain")
    assert maintained.returncode == 0, maintained.stderr
    assert "nest_cameras" in maintained.stdout


def test_live_edits_take_the_place_of_simulated_ones(stack):
    """The stream of Wikimedia, as a server of this machine has it."""
    start = datetime(2026, 2, 1, tzinfo=UTC)
    events = [orjson.loads(text) for text in simulate(Simulation(start, seed=7, limit=100))]
    wanted = {event["meta"]["id"].encode() for event in events}

    def missing():
        """Of the edits that were served, those that have not come in as live ones."""
        headers = (dict(message.headers()) for message in read_topic(from_this_machine(stack), "wikimedia"))
        return wanted - {one["event_id"] for one in headers if one["source"] == b"live"}

    services = stack.compose("--profile", "live", "config", "--services").stdout.split()
    assert {"produce-wikimedia-live"} == {name for name in services if "wikimedia" in name}
    stack.compose("stop", "produce-wikimedia", seconds=120)
    with serving(events, hold, host=stack.gateway()) as server:
        done = stack.compose("--profile", "live", "up", "--detach", "--no-build", "produce-wikimedia-live", WIKIMEDIA_URL=server.url)
        assert done.returncode == 0, done.stderr
        eventually(lambda: missing() == set(), "every edit that the live stream has")


def test_nothing_is_left_of_it(stack):
    done = stack.compose("--profile", "*", "down", "--volumes", seconds=120)
    assert done.returncode == 0, done.stderr
    assert left_over() == []
