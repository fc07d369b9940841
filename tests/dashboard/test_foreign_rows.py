"""Rows of another program in every topic that the pages read: each page is drawn, counts what it can read, and says what it left out."""

import os

import orjson
import pytest
import streamlit as st
from confluent_kafka import Producer
from foreign_rows import DECLARED, example, mutated
from pages import drawn
from running import RETRY_SECONDS
from streamlit.testing.v1 import AppTest
from topic_reset import empty_topics

from contract.domains.wikimedia import WIKIMEDIA_PROCESSED
from contract.topics import BatchEvent

BATCH = next(name for name, row in DECLARED.items() if row is BatchEvent)
READ_BY = {
    "nest": ("nest-camera-stats", "nest-camera-status", "nest-camera-alerts"),
    "taxi": ("taxi-borough-stats", "taxi-flows", "taxi-zone-sessions-early"),
    "wikimedia": ("wikimedia.processed", "wikimedia-wiki-stats"),
    "overview": ("query-states", "streaming-metrics", "verdicts"),
    "health": ("query-states", "streaming-metrics", "alerts"),
}


def script(name):
    from importlib import import_module

    if name == "overview":
        import_module("dashboard.overview.page").page({}, {})
    else:
        import_module("dashboard.health.page" if name == "health" else f"dashboard.domains.{name}").page()


@pytest.fixture
def produce(settings, monkeypatch):
    """Writes values to topics, which are empty before and after."""
    empty_topics(settings.kafka)
    monkeypatch.setitem(os.environ, "KAFKA_BOOTSTRAP_SERVERS", settings.bootstrap_servers)
    monkeypatch.setitem(vars(WIKIMEDIA_PROCESSED), "is_avro", False)  # JSON, which says more than Avro can
    producer = Producer({"bootstrap.servers": settings.bootstrap_servers})

    def write(topic, written):
        for number, value in enumerate(written):
            # The key of a row with a query is the query: each of the mutated ones has its own.
            own = value.replace(b'"query": "nest-camera-stats"', f'"query": "{number}"'.encode())
            producer.produce(topic, key="nest-camera-stats" if b'"query":"nest-camera-stats"' in value else f"{number}", value=own)
        assert producer.flush(RETRY_SECONDS) == 0

    yield write
    st.cache_resource.clear()
    empty_topics(settings.kafka)


def foreign(topic):
    """Mutated rows of the topic. Its good one is the last of them."""
    kinds = ["streaming-metrics", BATCH] if topic == "streaming-metrics" else [topic]
    rows = [example(kind) for kind in kinds]
    return [value for row in rows for _, value in mutated(row)] + [orjson.dumps(row) for row in rows]


@pytest.mark.parametrize("page", READ_BY)
def test_the_page_is_drawn_and_says_what_it_left_out(page, produce, until):
    for topic in READ_BY[page]:
        produce(topic, foreign(topic))
    app = AppTest.from_function(script, args=(page,), default_timeout=RETRY_SECONDS)

    def said():
        return "\n".join([element.label for element in drawn(app).expander] + [element.value for element in app.error])

    until(
        said,
        lambda said: all(said.count(f"of topic {topic} that cannot be read") == 1 for topic in READ_BY[page]),
        "each topic was to be named once",
    )
    assert app.metric, "what can be read is shown"
