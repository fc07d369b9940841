"""Each fault of `streamgauge break` on a running demo: its alert comes, and after `--undo` the queries run and every row is right."""

import json
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from plain import read_topic
from running import environment, eventually, settings_on_free_ports, succeed

from contract.domains.nest import NEST_CAMERA_STATS
from contract.query_status import read_statuses
from infrastructure.errors import StreamgaugeError
from streamgauge.demo.services import STOP_SECONDS
from streamgauge.platform import server
from streamgauge.workshop import breaking
from streamgauge.workshop.breakage import raw_rows
from streamgauge.workshop.faults import ARCHIVE, FAULTS, STATS, STATUS

pytestmark = pytest.mark.long
QUERIES = {STATS, STATUS, ARCHIVE, "wikimedia-dead-letters"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Settings of a demo that runs, with a row for each kind of fault."""
    settings = settings_on_free_ports(tmp_path_factory.mktemp("demo") / "home")
    command = [sys.executable, "-m", "streamgauge.cli", "demo", "--only", "nest", "--no-dashboard"]
    with subprocess.Popen(command, env=environment(settings)) as process:
        try:
            eventually(lambda: is_running(settings), "the demo to run")
            yield settings
            process.send_signal(signal.SIGINT)
            assert process.wait(STOP_SECONDS + server.STOP_SECONDS) == 0
        finally:
            process.kill()


def is_running(settings):
    try:
        states = {status.query for status in read_statuses(settings, print) if not status.is_trouble}
        return states >= QUERIES and len(raw_rows(settings, NEST_CAMERA_STATS)) > 10
    except StreamgaugeError:
        return False


def alerts_since(settings, begun):
    found = (json.loads(message.value()) for message in read_topic(settings, "alerts"))
    return [f"{one['query']} {one['what']}" for one in found if one["level"] != "resolved" and datetime.fromisoformat(one["time"]) >= begun]


def audit_says_right(settings, queries):
    verdicts = {message.key(): json.loads(message.value()) for message in read_topic(settings, "verdicts") if message.value()}
    return all(one["verdict"] == "right" for one in verdicts.values() if one["query"] in queries)


def is_repaired(settings, fault):
    try:
        return not list(breaking.remains(fault, settings)) and is_running(settings)
    except StreamgaugeError:  # Kafka is just going on
        return False


@pytest.mark.parametrize("fault", FAULTS)
def test_its_alert_comes_and_after_it_is_undone_every_row_is_right(demo, fault, record_property):
    begun, expected = datetime.now(UTC), FAULTS[fault].alert
    succeed("break", fault, settings=demo)
    if expected:
        told = eventually(lambda: [one for one in alerts_since(demo, begun) if expected in one], f"an alert with {expected!r}")
        assert all(one.startswith(FAULTS[fault].queries) for one in told)
        record_property("seconds until the alert", round((datetime.now(UTC) - begun).total_seconds()))
    undone = time.monotonic()
    succeed("break", "--undo", settings=demo)
    eventually(lambda: is_repaired(demo, fault), "the system to be repaired")
    record_property("seconds until it is repaired", round(time.monotonic() - undone))
    if expected:  # the audit alarms again only after it has seen that all is right
        eventually(lambda: audit_says_right(demo, FAULTS[fault].queries), "the audit to say that every row is right")
