"""The names of topics with STREAMGAUGE_TOPIC_PREFIX, and those of people for them."""

import os
import re
import subprocess
import sys

import pytest
from auditing import read_range, result
from messages import absent

from contract.domains import TOPICS, name_in_kafka, plain_name
from contract.domains.nest import NEST_LOGS
from contract.topics import topic_prefix

LONGEST_IN_KAFKA, LONGEST_PREFIX = 249, "a" * 200


@pytest.fixture
def prefix(monkeypatch):
    def chosen(text):
        monkeypatch.setenv("STREAMGAUGE_TOPIC_PREFIX", text)
        topic_prefix.cache_clear()

    yield chosen
    topic_prefix.cache_clear()


def test_a_plain_name_and_the_one_in_kafka_are_the_same_topic(prefix):
    prefix("team1.")
    assert NEST_LOGS.name == "team1.nest-logs"
    for name in ("nest-logs", "nest-camera-stats.v2"):
        assert {name_in_kafka(name), name_in_kafka(f"team1.{name}")} == {f"team1.{name}"}
        assert {plain_name(name), plain_name(f"team1.{name}")} == {name}


@pytest.mark.parametrize("name", ["orders", "team1.orders", "team2.nest-logs", "nest-logs.backup"])
def test_a_topic_of_others_keeps_its_name(prefix, name):
    prefix("team1.")
    assert (name_in_kafka(name), plain_name(name)) == (name, name)


def test_every_topic_of_a_version_beside_another_has_a_name_that_kafka_takes_with_the_longest_prefix(prefix):
    prefix(LONGEST_PREFIX)
    assert max(len(f"{topic.name}.v1000") for topic in TOPICS) <= LONGEST_IN_KAFKA


def test_rows_of_a_checkpoint_with_another_prefix_are_not_checked():
    found = read_range("team1.nest-logs", 1).verdict(result("nest-camera-stats"), {})
    facts = (
        "is of topic team1.nest-logs, and not of nest-logs",
        "set STREAMGAUGE_TOPIC_PREFIX as it was",
        "`streamgauge reset nest-camera-stats`",
    )
    assert (found.verdict, absent(found.problem, *facts)) == ("not checked", [])


def test_the_texts_of_faults_name_topics_as_they_are_in_kafka():
    code = "from streamgauge.workshop.faults import FAULTS; print(*(one.told for one in FAULTS.values()))"
    named = {**os.environ, "STREAMGAUGE_TOPIC_PREFIX": "team1."}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=named).stdout
    topics = re.findall(r"(?i:topic|records to) ([a-z0-9.]*(?:nest-|wikimedia)[a-z-]*)", told)
    assert (len(topics) >= 10, {name for name in topics if not name.startswith("team1.")}) == (True, set())
