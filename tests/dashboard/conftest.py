"""A topic of its own for each test, on the session's broker, and a writer of result rows."""

import dataclasses
import json
import os
import time
import uuid
from datetime import UTC, datetime, timedelta

import httpx2
import orjson
import pytest
import streamlit as st
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from query_topics import QueryTopics
from running import PATIENCE_MS, RETRY_SECONDS, environment
from topic_reset import empty_topics

from contract.create_topics import create_topics
from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATS, NEST_CAMERA_STATUS
from contract.domains.taxi import TAXI_BOROUGH_STATS
from contract.domains.wikimedia import WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
from contract.topics import ALERTS, DEAD_LETTERS, QUERY_STATES, STREAMING_METRICS, VERDICTS
from dashboard import page_head
from dashboard.domains import nest
from dashboard.health import dead_letters as health_dead_letters
from dashboard.health import page as health
from dashboard.server import dashboard_command, dashboard_url
from streamgauge.platform.log_file import log_tail
from streamgauge.platform.processes import GuardedProcess

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WINDOW = {"width": 1400, "height": 900}


class ResultTopic:
    """Writes camera stats, as the pipeline does, and waits until Kafka has them."""

    def __init__(self, kafka, name):
        self.kafka, self.bootstrap_servers, self.name = kafka, kafka.bootstrap_servers, name
        self.keys = set()
        self._producer = Producer({"bootstrap.servers": self.bootstrap_servers, "linger.ms": 0})

    def count(self, zip_code, count, *, start=NOON, length=timedelta(hours=1), age=timedelta(0)):
        """Writes a count, `age` ago by Kafka's timestamp; a count of None deletes the row."""
        window = {"end": f"{start + length:%Y-%m-%dT%H:%M:%SZ}", "start": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
        key = json.dumps({"window": window, "zip_code": zip_code}, separators=(",", ":"))
        value = None if count is None else json.dumps({"zip_code": zip_code, "window": window, "count": count})
        self.write(key, value, age=age)

    def write(self, key, value, *, age=timedelta(0)):
        """Writes a record as it is."""
        self.keys.add(key)
        timestamp_ms = int((datetime.now(UTC) - age).timestamp() * 1000)
        self._producer.produce(self.name, key=key, value=value, timestamp=timestamp_ms)
        assert self._producer.flush(RETRY_SECONDS) == 0, (
            f"Kafka at {self.bootstrap_servers} did not take a record for {self.name} in {RETRY_SECONDS} s"
        )


@pytest.fixture(autouse=True)
def settings_of_the_test():
    """The pages of each test read the settings from its own environment."""
    page_head.dashboard_settings.cache_clear()


@pytest.fixture(scope="session")
def until():
    """Retries `observe()` until `expected(seen)` holds and returns what was seen; fails with what was seen last."""

    def retry(observe, expected, what):
        deadline = time.monotonic() + RETRY_SECONDS
        while not expected(seen := observe()):
            if time.monotonic() > deadline:
                pytest.fail(f"{what} within {RETRY_SECONDS} s, but last seen was: {seen}")
            time.sleep(0.05)
        return seen

    return retry


@pytest.fixture
def topic(settings, monkeypatch, until):
    """An empty topic of the same kind as nest-camera-stats, which the Nest page reads in its stead."""
    name = f"{NEST_CAMERA_STATS.name}-{uuid.uuid4()}"
    own = dataclasses.replace(NEST_CAMERA_STATS, plain_name=name)
    create_topics(settings.kafka, [own])
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    until(lambda: admin.list_topics(timeout=RETRY_SECONDS).topics, lambda topics: name in topics, f"topic {name} was to be there")
    monkeypatch.setattr(nest, "TOPIC", own)
    monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", settings.bootstrap_servers)
    yield ResultTopic(settings.kafka, name)
    st.cache_resource.clear()


@pytest.fixture
def camera_stats(settings):
    """The topic nest-camera-stats itself, which another process reads; it is left as empty as it was."""
    topic = ResultTopic(settings.kafka, NEST_CAMERA_STATS.name)
    yield topic
    for key in topic.keys:
        topic.write(key, None)


@pytest.fixture
def taxi_stats(settings):
    """The topic taxi-borough-stats itself, which another process reads; it is left as empty as it was."""
    topic = ResultTopic(settings.kafka, TAXI_BOROUGH_STATS.name)
    yield topic
    for key in topic.keys:
        topic.write(key, None)


@pytest.fixture
def camera_topics(settings, until):
    """The topics about cameras, status and alerts, which every Nest page reads, empty: other tests share the broker."""
    used = [NEST_CAMERA_STATUS, NEST_CAMERA_ALERTS]
    admin, names = settings.kafka.admin(), {topic.name for topic in used}
    for deleted in admin.delete_topics(list(names)).values():
        deleted.result(RETRY_SECONDS)
    until(lambda: set(admin.list_topics(timeout=RETRY_SECONDS).topics), names.isdisjoint, f"{names} were to be deleted")
    create_topics(settings.kafka, used)
    topics = [ResultTopic(settings.kafka, topic.name) for topic in used]
    yield topics
    for topic in topics:
        for key in topic.keys:
            topic.write(key, None)
    st.cache_resource.clear()


@pytest.fixture
def wikimedia_topics(settings):
    """The topics of the Wikimedia page themselves, by name, for another process; they are left as empty as they were."""
    topics = {topic.name: ResultTopic(settings.kafka, topic.name) for topic in (WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS)}
    yield topics
    for topic in topics.values():
        for key in topic.keys:
            topic.write(key, None)


@pytest.fixture
def kafka(settings, monkeypatch):
    """Empty topics about queries, which the Health page reads in the stead of its own."""
    topics = {"states": QUERY_STATES, "metrics": STREAMING_METRICS, "alerts": ALERTS, "letters": DEAD_LETTERS, "verdicts": VERDICTS}
    own = {kind: dataclasses.replace(topic, plain_name=f"{topic.name}-{uuid.uuid4()}") for kind, topic in topics.items()}
    names = {kind: topic.name for kind, topic in own.items()}
    create_topics(settings.kafka, list(own.values()))
    monkeypatch.setattr(health, "TOPIC", own["states"])
    monkeypatch.setattr(health, "METRICS_TOPIC", names["metrics"])
    monkeypatch.setattr(health, "ALERTS_TOPIC", names["alerts"])
    monkeypatch.setattr(health_dead_letters, "TOPIC", names["letters"])
    monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", settings.bootstrap_servers)
    yield QueryTopics(settings.bootstrap_servers, names)
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def states(settings):
    """Writes the rows of topic query-states itself, which the served page reads; it is left as empty as it was."""
    producer, queries = Producer({"bootstrap.servers": settings.bootstrap_servers, "linger.ms": 0}), set()

    def write(topic, key, value, headers=None):
        producer.produce(topic, key=key, value=value, headers=headers)
        assert producer.flush(RETRY_SECONDS) == 0

    def state(query, kind, **fields):
        queries.add(query)
        now = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}.000Z"  # however slow the machine, it is not silent
        row = {"query": query, "state": kind, "since": now, "time": now, "started_at": now, "process": {"host": "here", "pid": 7}}
        nothing = dict.fromkeys(("run_id", "error", "error_detail", "error_at", "progress"))
        write(QUERY_STATES.name, query, orjson.dumps(row | {"source_offsets": {}} | nothing | fields))

    state.letter = lambda value, reason: write(
        DEAD_LETTERS.name, "key", value, headers=[("topic", b"nest-logs"), ("partition", b"0"), ("offset", b"3"), ("reason", reason)]
    )
    yield state
    for query in queries:
        write(QUERY_STATES.name, query, None)


@pytest.fixture(scope="session")
def two_tabs(browser):
    """Two pages of the browser. To go on in one takes a quarter of the CPU time of opening another."""
    return [browser.new_page(viewport=WINDOW) for _ in range(2)]


def empty(tab):
    tab.goto("about:blank")
    tab.emulate_media(color_scheme="null")
    tab.set_viewport_size(WINDOW)


@pytest.fixture
def tab(two_tabs):
    """A page of the browser, which shows nothing."""
    yield two_tabs[0]
    empty(two_tabs[0])


@pytest.fixture
def other_tab(two_tabs):
    """Another page of the browser, which shows nothing."""
    yield two_tabs[1]
    empty(two_tabs[1])


@pytest.fixture(scope="module")
def dashboard(settings, until, tmp_path_factory):
    """The served dashboard's address. It begins with empty tables, whatever earlier tests have written."""
    empty_topics(settings.kafka)
    log, url = tmp_path_factory.mktemp("dashboard") / "dashboard.log", dashboard_url(settings)
    process = GuardedProcess.start(dashboard_command(settings), log=log, environment=environment(settings))

    def health():
        if not process.is_running:
            pytest.fail(f"the dashboard ended instead of answering at {url}; the end of its log:\n{log_tail(log)}")
        try:
            return httpx2.get(f"{url}/_stcore/health", timeout=RETRY_SECONDS).text
        except httpx2.ConnectError as error:
            return str(error)

    until(health, "ok".__eq__, f"the dashboard was to answer at {url}")
    yield url
    process.stop()


@pytest.fixture
def page(tab, dashboard):
    """The opened Nest page. What its console says about errors, and every request that leaves loopback, fails the test."""
    complaints = []

    def hear(message):
        if message.type == "error":
            complaints.append(message.text)

    def see(request):
        if not request.url.startswith((dashboard, "data:", "blob:")):
            complaints.append(request.url)

    tab.on("console", hear)
    tab.on("request", see)
    tab.goto(dashboard)
    tab.get_by_role("link", name="Nest cameras").click(timeout=PATIENCE_MS)
    yield tab
    tab.remove_listener("console", hear)
    tab.remove_listener("request", see)
    assert not complaints, f"the browser's console and requests to elsewhere: {complaints}"
