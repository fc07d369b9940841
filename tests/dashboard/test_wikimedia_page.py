"""The Wikimedia page in each of its states, through Streamlit's AppTest, over real topics and a real schema registry."""

import dataclasses
import json
import os
import uuid
from datetime import UTC, datetime, timedelta

import pytest
import streamlit as st
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from messages import absent
from pages import drawn
from query_topics import QueryTopics
from running import RETRY_SECONDS, free_ports, start_server
from streamlit.testing.v1 import AppTest

from contract.create_topics import create_topics
from contract.domains.wikimedia import WIKIMEDIA, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
from contract.topics import QUERY_STATES
from dashboard import formats
from dashboard.domains import wikimedia, wikimedia_stream
from infrastructure.storage.data_files import data_file
from streamgauge.platform.registry import EmbeddedRegistry

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SCHEMA = data_file("schemas/wikimedia.processed-value.avsc").read_text()


class Topics:
    """Topics of the test's own, which the page reads in their stead; written as the pipeline and the producer do."""

    def __init__(self, settings, monkeypatch):
        self.settings = settings
        topics = (WIKIMEDIA, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS, QUERY_STATES)
        self.own = {topic.name: dataclasses.replace(topic, plain_name=f"{topic.name}-{uuid.uuid4()}") for topic in topics}
        create_topics(settings.kafka, list(self.own.values()))
        monkeypatch.setattr(wikimedia, "TOPIC", self.own[WIKIMEDIA_PROCESSED.name])
        monkeypatch.setattr(wikimedia, "WIKIS_TOPIC", self.own[WIKIMEDIA_WIKI_STATS.name])
        monkeypatch.setattr(wikimedia_stream, "SOURCE_TOPIC", self.own[WIKIMEDIA.name].name)
        monkeypatch.setattr(wikimedia_stream, "STATES_TOPIC", self.own[QUERY_STATES.name])
        monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", settings.bootstrap_servers)
        monkeypatch.setitem(os.environ, "SCHEMA_REGISTRY_URL", settings.registry_url)
        self._producer = Producer({"bootstrap.servers": settings.bootstrap_servers, "linger.ms": 0})

    def value(self, who, counts, *, seconds=0, schema=SCHEMA):
        """Edits in the window of 60 s that starts so many seconds after noon."""
        start = NOON + timedelta(seconds=seconds)
        row = {"window": {"start": start, "end": start + timedelta(seconds=60)}, "requested_by": who, "counts": counts}
        serialize = AvroSerializer(SchemaRegistryClient({"url": self.settings.registry_url}), schema)
        return serialize(row, SerializationContext(WIKIMEDIA_PROCESSED.name, MessageField.VALUE))

    def count(self, who, counts, *, seconds=0, age=timedelta(0)):
        value = self.value(who, counts, seconds=seconds)
        self.write(WIKIMEDIA_PROCESSED, value, key=f"{who} {seconds}", age=age)
        return value

    def wiki(self, wiki, edits, *, minute=0, added=0, removed=0):
        start = NOON + timedelta(minutes=minute)
        window = {"end": f"{start + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}", "start": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
        row = {"wiki": wiki, "namespace": 0, "window": window, "edits": edits, "bytes_added": added, "bytes_removed": removed}
        self.write(WIKIMEDIA_WIKI_STATS, json.dumps(row), key=f"{wiki} {minute}")

    def write(self, topic, value, *, key=None, age=timedelta(0), headers=None, partition=-1):
        timestamp_ms = int((datetime.now(UTC) - age).timestamp() * 1000)
        self._producer.produce(self.own[topic.name].name, value, key, partition=partition, timestamp=timestamp_ms, headers=headers or {})
        assert self._producer.flush(RETRY_SECONDS) == 0, f"Kafka did not take a record in {RETRY_SECONDS} s"


@pytest.fixture
def topics(registry, monkeypatch):
    yield Topics(registry, monkeypatch)
    st.cache_resource.clear()


@pytest.fixture
def own_registry(settings, tmp_path):
    """The worker's broker, and a registry of the test's own, which it stops."""
    registry = EmbeddedRegistry(dataclasses.replace(settings, home=tmp_path / "home", registry_port=free_ports(1)[0]))
    start_server(registry)
    yield registry
    registry.stop()


class Page:
    def __init__(self, retry):
        def script():
            from dashboard.domains import wikimedia

            wikimedia.page()

        self.app, self._retry = AppTest.from_function(script, default_timeout=RETRY_SECONDS), retry

    def until(self, expected, what):
        self._retry(self.look, expected, what)
        return self

    def look(self):
        drawn(self.app)
        return self

    def __repr__(self):
        return f"{self.metrics}\n{self.meanings}\n{self.texts}"

    @property
    def metrics(self):
        return {metric.label: metric.value for metric in self.app.metric}

    @property
    def meanings(self):
        return {metric.label: metric.delta for metric in self.app.metric}

    @property
    def texts(self):
        shown = [
            *self.app.title,
            *self.app.header,
            *self.app.markdown,
            *self.app.caption,
            *self.app.error,
            *self.app.warning,
            *self.app.info,
        ]
        return "\n".join([element.value for element in shown] + [expander.label for expander in self.app.expander])

    @property
    def windows(self):
        """The table "Windows": (from, bots, humans) from above."""
        frame = next(table.value for table in self.app.dataframe if "bots" in table.value)
        return [
            (f"{start:%H:%M:%S}", bots, humans) for start, bots, humans in zip(frame["start"], frame["bots"], frame["humans"], strict=True)
        ]


@pytest.fixture
def page(until):
    return Page(until)


@pytest.mark.usefixtures("topics")
def test_empty_topics_say_what_they_wait_for(page):
    page.until(lambda seen: "streamgauge demo" in seen.texts, "the empty state was to appear")
    assert not page.metrics


def test_windows_are_shown_one_by_one_and_the_newest_whole_one_is_told(topics, page):
    for seconds, bots, humans in ((0, 30, 70), (30, 1_200, 800), (60, 20, 0), (90, 3, 4)):
        topics.count("Bot", bots, seconds=seconds)
        if humans:
            topics.count("Human", humans, seconds=seconds)
    topics.wiki("enwiki", 7, added=1_500, removed=12)
    page.until(
        lambda seen: seen.metrics.get("Newest window, so far") == "7" and "Busiest wikis" in seen.texts, "the windows were to appear"
    )

    assert page.windows == [("12:01:30", 3, 4), ("12:01:00", 20, 0), ("12:00:30", 1_200, 800), ("12:00:00", 30, 70)]
    assert (page.metrics["Last whole window"], page.metrics["Made by bots"]) == ("2,000", "60%")
    assert page.meanings["Last whole window"] == "12:00:30\N{EN DASH}12:01:30"
    assert page.meanings["Made by bots"] == "1,200 of 2,000 edits"
    assert absent(page.texts, "1.5 kB", "12 bytes", "7 edits", "Live") == []


def test_it_says_where_the_records_come_from_and_how_many_the_query_has_still_to_read(topics, page):
    topics.count("Bot", 1)
    topics.write(WIKIMEDIA, b"1", partition=1, headers={"source": b"live"})
    topics.write(WIKIMEDIA, b"2", partition=2, headers={"source": b"<b>mine</b>"})
    QueryTopics(topics.settings.bootstrap_servers, {"states": topics.own[QUERY_STATES.name].name}).state(
        "wikimedia-edit-stats", source_offsets={}
    )
    page.until(
        lambda seen: "Source: Wikimedia, live" in seen.texts and seen.metrics.get("Records not yet read") == "5",
        "the live stream and the lag were to appear",
    )
    assert "Source: unknown" in page.texts, "a word that nobody knows"
    assert "mine" not in page.texts


def test_a_value_that_cannot_be_read_is_told_and_the_rest_is_shown(topics, page):
    good = topics.count("Bot", 7)
    topics.write(WIKIMEDIA_PROCESSED, b"no avro at all", key="a")
    topics.write(WIKIMEDIA_PROCESSED, good[:1] + (2**31 - 1).to_bytes(4, "big") + good[5:], key="b")
    topics.write(WIKIMEDIA_PROCESSED, good[:9], key="c")
    topics.count("<script>", 5)
    topics.wiki("enwiki", "many")
    topics.wiki("dewiki", 3)
    page.until(
        lambda seen: seen.metrics.get("Newest window, so far") == "7" and len(seen.app.expander) == 2, "what can be read was to appear"
    )

    assert "4 values of topic wikimedia.processed" in page.texts
    assert "1 value of topic wikimedia-wiki-stats" in page.texts
    reasons = "\n".join(next(table.value for table in page.app.dataframe if "reason" in table.value)["reason"])
    assert "not in the Confluent wire format" in reasons
    assert "no Avro schema of id 2147483647" in reasons
    assert "Input should be 'Bot' or 'Human'" in reasons


def test_without_a_registry_it_shows_what_needs_none(topics, page, monkeypatch):
    monkeypatch.setitem(os.environ, "SCHEMA_REGISTRY_URL", "http://127.0.0.1:1/apis/ccompat/v7")
    topics.count("Bot", 7)
    topics.wiki("enwiki", 41)
    page.until(lambda seen: not absent(seen.texts, formats.plain("http://127.0.0.1:1/apis"), "41 edits"), "half of the page was to appear")
    assert not page.metrics


def test_it_keeps_what_it_has_while_the_registry_is_away_and_goes_on_when_it_is_back(own_registry, monkeypatch, page):
    topics, registry = Topics(own_registry.settings, monkeypatch), own_registry
    newer = json.loads(SCHEMA)
    newer["fields"].append({"name": "note", "type": ["null", "string"], "default": None})
    known = topics.count("Bot", 7)
    unknown = topics.value("Bot", 9, schema=json.dumps(newer), seconds=-3600)
    page.until(lambda seen: seen.windows == [("12:00:00", 7, 0)] if seen.metrics else False, "the window was to appear")

    registry.stop()
    topics.write(WIKIMEDIA_PROCESSED, known, key="the same window again")
    page.until(lambda seen: seen.windows == [("12:00:00", 14, 0)], "a schema that is known was to be read without the registry")
    topics.write(WIKIMEDIA_PROCESSED, unknown, key="by a schema that is not known")
    url = formats.plain(own_registry.settings.registry_url)
    page.until(lambda seen: url in seen.texts, "the absence of the registry was to be told")
    assert page.windows == [("12:00:00", 14, 0)]

    start_server(registry)
    page.app.segmented_control(key="period").set_value("6 hours")
    page.until(lambda seen: seen.windows == [("12:00:00", 14, 0), ("11:00:00", 9, 0)], "the page was to go on by itself")
    assert url not in page.texts
    st.cache_resource.clear()
