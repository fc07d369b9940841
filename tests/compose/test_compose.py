"""docker-compose.yaml: everything comes up, nothing is ended for want of memory, the numbers are right, and what is killed comes back.

In this order, on one stack.
"""

import json
import os
import re
import time
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from composed import delays, ended_since, left_over
from confluent_kafka import KafkaException
from plain import folded, read_topic
from playwright.sync_api import expect
from running import PATIENCE_MS, eventually
from sse_server import hold, serving

from audit.audited import Table
from audit.catalog import audited
from contract.domains import DOMAINS
from infrastructure.text import utc_text
from pipeline.catalog import chosen
from producers.wikimedia.simulation import Simulation, simulate

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]
WATCHED = timedelta(minutes=float(os.environ.get("MINUTES", "10")))
LONG_RUNNING = ("kafka", "registry", "spark-master", "spark-worker", "pipeline", "produce-nest", "produce-taxi", "produce-wikimedia")
SERVICES = {*LONG_RUNNING, "audit", "dashboard", "upkeep"}
EXECUTOR = "[C]oarseGrainedExecutorBackend"
"""Matches the command of an executor, and not that of the search for it."""


def empty_results(stack):
    """The result topics of the queries that run by default in which there is no row; alerts may have none."""
    names = {query.name for query in chosen([], stack.settings)}
    topics = {one.topic.name for one in audited(stack.settings) if isinstance(one, Table) and one.query in names and one.growing}
    try:
        return [name for name in sorted(topics) if not read_topic(stack.settings, name)]
    except (KafkaException, KeyError) as error:
        return [str(error)]


def all_healthy(stack):
    return stack.services() == dict.fromkeys(SERVICES, "running (healthy)")


def verify(stack):
    """`streamgauge verify` in a container of its own, all right."""
    done = stack.app("verify", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    return {one["query"]: one["records"] for one in json.loads(done.stdout) if one["verdict"] == "right"}


def statuses(stack):
    done = stack.app("status", "--format", "json")
    return json.loads(done.stdout) if done.returncode == 0 else []


def is_counting_since(stack, moment):
    """Whether all queries have ended a batch after `moment`."""
    found = statuses(stack)
    return bool(found) and all(one["batch_at"] is not None and datetime.fromisoformat(one["batch_at"]) > moment for one in found)


def test_the_file_is_clean(stack):
    done = stack.compose("config", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_result_topic_fills(stack):
    eventually(lambda: empty_results(stack) == [], "a row in every result topic, by the listener for this machine")


def test_for_a_while_nothing_ends_and_queries_keep_up(stack):
    begun = datetime.now(UTC)
    deadline = time.monotonic() + WATCHED.total_seconds()
    while time.monotonic() < deadline:
        time.sleep(15)
        assert ended_since(begun) == [], stack.memory_mib()
    assert all_healthy(stack), stack.services()
    reports = [report for report in stack.batches() if report["time"] > utc_text(begun)]
    half = utc_text(begun + WATCHED / 2)
    first, second = (delays(report for report in reports if (report["time"] > half) is is_late) for is_late in (False, True))
    assert set(first) == set(second) == {query.name for query in chosen([], stack.settings)}
    grown = {query: (first[query], second[query]) for query in first if second[query].p50 > 2 * max(first[query].p50, 5)}
    assert grown == {}, "records wait longer and longer"
    assert stack.log("pipeline").count("has ended") == 0


def unverified(stack, since):
    """The queries that run by default which the audit has not found right at a look after `since`, with its verdict."""
    verdicts = {query.decode(): row["verdict"] for query, row in folded(stack.settings, "verdicts").items() if row["time"] > since}
    wanted = {query.name for query in chosen([], stack.settings)}
    return {query: verdicts.get(query) for query in wanted if verdicts.get(query) != "right"}


def test_the_audit_finds_every_table_right(stack):
    now = utc_text(datetime.now(UTC))
    eventually(lambda: unverified(stack, now) == {}, "the audit to find each table right at another look")


def test_pages_show_rows_in_a_browser(stack, browser):
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{stack.dashboard_port}/")
    for number in range(len(DOMAINS)):
        expect(page.get_by_test_id("stColumn").nth(number)).to_contain_text(re.compile("Verified .* ago"), timeout=PATIENCE_MS)
    for domain in DOMAINS:
        page.get_by_role("link", name=domain.title).click()
        expect(page.get_by_test_id("stVegaLiteChart").first, domain.title).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_text(re.compile("Live · last update"))).to_be_visible(timeout=PATIENCE_MS)
        assert page.get_by_test_id("stException").count() == 0
    page.get_by_role("link", name="Health").click()
    expect(page.get_by_test_id("stDataFrame").first).to_contain_text("nest-camera-stats", timeout=PATIENCE_MS)
    page.close()


def test_an_executor_and_a_worker_that_are_killed_are_told_and_replaced(stack):
    for number, (what, reason) in enumerate(((EXECUTOR, "killed by signal 9"), ("", "worker lost"))):
        killed = datetime.now(UTC)
        stack.kill("spark-worker", what)
        eventually(lambda reason=reason: reason in stack.log("pipeline"), "the pipeline to say which executor has ended, and why")
        said = stack.app("status").stdout
        assert f"executor {number} on" in said, said
        eventually(lambda killed=killed: is_counting_since(stack, killed + timedelta(seconds=20)), "every query to count again")


@pytest.mark.parametrize("service", LONG_RUNNING)
def test_a_container_that_is_killed_comes_back(stack, service):
    killed = datetime.now(UTC)
    stack.kill(service)
    eventually(lambda: any(one.startswith(f"{service}:") for one in ended_since(killed)), "the container to end")
    eventually(lambda: all_healthy(stack), "every service to be healthy")
    eventually(lambda: is_counting_since(stack, datetime.now(UTC) - timedelta(seconds=60)), "every query to count")


def test_every_row_is_right_after_all_these_kills(stack):
    assert "the previous run did not stop cleanly" in stack.log("pipeline")
    assert {query.name for query in chosen([], stack.settings)} <= set(verify(stack))


def test_commands_in_a_container_of_their_own(stack):
    report = json.loads(stack.app("report", "nest-camera-stats", "--format", "json").stdout)
    assert sum(row["count"] for row in report) > 0
    maintained = stack.compose("exec", "-T", "upkeep", "streamgauge", "maintain")
    assert maintained.returncode == 0, maintained.stderr
    assert "nest_cameras" in maintained.stdout


def test_down_and_up_go_on(stack):
    before = verify(stack)
    assert stack.compose("down", seconds=120).returncode == 0
    begun = datetime.now(UTC)
    done = stack.compose("up", "--detach", "--wait", "--no-build")
    assert done.returncode == 0, done.stderr
    eventually(lambda: is_counting_since(stack, begun), "every query to count")
    after = verify(stack)
    assert all(after[query] > records for query, records in before.items()), (before, after)
    assert "did not stop cleanly" not in stack.log("pipeline"), "`down` stops the pipeline, and it says so to Kafka"


def test_live_edits_take_the_place_of_simulated_ones(stack):
    """The stream of Wikimedia, as a server of this machine has it."""
    start = datetime(2026, 2, 1, tzinfo=UTC)
    events = [orjson.loads(text) for text in simulate(Simulation(start, seed=7, limit=100))]
    wanted = {event["meta"]["id"].encode() for event in events}

    def missing():
        """Of the edits that were served, those that have not come in as live ones."""
        headers = (dict(message.headers()) for message in read_topic(stack.settings, "wikimedia"))
        return wanted - {one["event_id"] for one in headers if one["source"] == b"live"}

    services = stack.compose("--profile", "live", "config", "--services").stdout.split()
    assert {"produce-wikimedia-live"} == {name for name in services if "wikimedia" in name}
    stack.compose("stop", "produce-wikimedia", seconds=120)
    begun = datetime.now(UTC)
    with serving(events, hold, host=stack.gateway()) as server:
        done = stack.compose("--profile", "live", "up", "--detach", "--no-build", "produce-wikimedia-live", WIKIMEDIA_URL=server.url)
        assert done.returncode == 0, done.stderr
        eventually(lambda: missing() == set(), "every edit that the live stream has")
    assert set(ended_since(begun)) <= {"topics: exit code 0"}, "only what creates the topics ends"


def test_nothing_is_left_of_it(stack):
    done = stack.compose("--profile", "*", "down", "--volumes", seconds=120)
    assert done.returncode == 0, done.stderr
    assert left_over() == []
