"""The cards of `streamgauge workshop break`: each breaks what it says, and shows where its answer says."""

import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from messages import absent
from plain import START, one_camera, read_topic, write_topic
from running import environment, eventually, one_line_error, streamgauge, succeed, verify
from topic_reset import empty_topics

from contract.kafka.create_topics import create_topics
from contract.kafka.tombstones import write_rows
from streamgauge.workshop.cards import CARDS

QUERIES = ("nest-camera-stats", "nest-dead-letters")
CAMERAS = 20


def play(settings, card):
    done = succeed("workshop", "break", str(card), settings=settings)
    assert done.stdout.startswith(f"card {card} is played"), done.stdout


def rows_found(settings):
    return verify("nest-camera-stats", settings=settings)["nest-camera-stats"]["rows"]


@pytest.fixture(scope="module")
def counted_once(settings, tmp_path_factory):
    """A home in which each camera's sighting has an hour of its own, and all are counted."""
    empty_topics(settings.kafka)
    settings = replace(settings, home=tmp_path_factory.mktemp("home"))
    hours = [START.replace(hour=number) for number in range(CAMERAS)]
    write_topic(settings, "nest-logs", [one_camera("cam-1", hour) for hour in hours], key=b"home")
    succeed("run", *QUERIES, "--once", settings=settings)
    return settings, {message.key(): message.value() for message in read_topic(settings, "nest-camera-stats")}


@pytest.fixture
def counted(counted_once):
    """The same home, with the rows as they were counted: the cards before have changed some."""
    settings, rows = counted_once
    write_rows(settings.kafka, "nest-camera-stats", rows)
    return settings


def test_card_2_rubbish_becomes_dead_letters_and_no_count_is_wrong(counted):
    play(counted, 2)
    succeed("run", *QUERIES, "--once", settings=counted)
    assert len(read_topic(counted, "dead-letters")) == 600
    assert rows_found(counted)["equal"] == CAMERAS


def test_card_3_verify_names_the_rows_that_are_missing(counted):
    play(counted, 3)
    rows = rows_found(counted)
    assert (rows["equal"], rows["missing"]) == (13, 7)


def test_card_4_verify_names_the_rows_that_are_wrong(counted):
    play(counted, 4)
    rows = rows_found(counted)
    assert (rows["equal"], rows["different"]) == (16, 4)


def test_card_5_the_query_is_given_up_and_names_its_checkpoint(counted):
    play(counted, 5)
    write_topic(counted, "nest-logs", [one_camera("cam-2", START)])
    done = streamgauge("run", *QUERIES, "--once", settings=counted, STREAMGAUGE_RESTART_LIMIT="1")
    assert absent(done.stderr, "nest-camera-stats given up", "damaged", str(counted.checkpoints), "reset") == []


def test_card_1_the_producer_stands_still(fresh):
    command = [sys.executable, "-m", "streamgauge.cli", "produce", "nest", "--rate", "10"]
    with subprocess.Popen(command, env=environment(fresh), stderr=subprocess.DEVNULL) as producer:
        try:
            eventually(lambda: read_topic(fresh, "nest-logs"), "the producer's first document")
            play(fresh, 1)
            eventually(lambda: psutil.Process(producer.pid).status() == psutil.STATUS_STOPPED, "the producer to stand still")
        finally:
            producer.kill()


def test_card_6_the_query_names_the_topic_and_up_creates_it(fresh):
    try:
        play(fresh, 6)
        admin = AdminClient({"bootstrap.servers": fresh.bootstrap_servers})
        eventually(lambda: "nest-camera-status" not in admin.list_topics().topics, "the topic to be gone")
        done = streamgauge("run", "nest-camera-status", "--once", settings=fresh, STREAMGAUGE_RESTART_LIMIT="0")
        assert "no topic nest-camera-status" in done.stderr, done.stderr
    finally:
        create_topics(fresh.kafka)


@pytest.mark.parametrize(
    ("card", "told"),
    [("1", "no `streamgauge produce nest` runs"), ("4", "has no rows yet"), ("5", "no checkpoint on this machine yet"), ("9", "no card 9")],
)
def test_a_card_that_cannot_be_played_says_why(fresh, card, told):
    assert told in one_line_error(streamgauge("workshop", "break", card, settings=fresh))


def test_an_answer_has_cause_signs_and_repair(fresh):
    for card in CARDS:
        answer = streamgauge("workshop", "break", str(card), "--answer", settings=fresh).stdout
        assert [line.split(":")[0] for line in answer.splitlines() if line] == ["cause", "signs", "repair"]
