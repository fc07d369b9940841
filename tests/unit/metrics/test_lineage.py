"""`streamgauge lineage`: what a server of OpenLineage is told over HTTP of the events on a broker without Java."""

import functools
import json
import os
import threading
import urllib.request
from contextlib import contextmanager
from datetime import UTC, datetime
from unittest.mock import patch

import orjson
import pytest
from foreign_rows import valid
from jsonschema import Draft202012Validator
from mock_kafka import MockKafka
from openlineage.client.event_v2 import RunEvent
from referencing import Registry, Resource
from running import RETRY_SECONDS, eventually, one_line_error, streamgauge
from web_server import webhook

from contract.topics import STREAMING_METRICS
from infrastructure.process.stop_signals import StopRequest
from streamgauge.metrics.events import Batch, follow_events
from streamgauge.metrics.lineage import Lineage

RUN, OTHER_RUN = "0198c3c8-7f3e-7a10-8000-000000000001", "0198c3c8-7f3e-7a10-8000-000000000002"
STARTED = {"event": "started", "query": "nest-camera-stats", "time": "2026-01-01T12:30:00.000Z", "run_id": RUN}
FAILED = STARTED | {"event": "terminated", "error": "boom", "error_detail": "boom\nin line 1"}
STOPPED = FAILED | {"query": "nest-archive", "run_id": OTHER_RUN, "error": None, "error_detail": None}
BATCH = valid(Batch.core_schema()) | STOPPED | {"event": "progress"}


@pytest.fixture
def kafka(tmp_path):
    return MockKafka(tmp_path, [STREAMING_METRICS.name])


@contextmanager
def following(kafka, address, warn):
    """OpenLineage's server at the address is told of events."""
    with patch.dict(os.environ, {"OPENLINEAGE_URL": address}):  # to which its client adds others
        stop, lineage = StopRequest(), Lineage(kafka.settings, warn)
    # This broker has no controller, which the follower asks for every few seconds: it says so, and goes on.
    thread = threading.Thread(target=follow_events, args=[kafka.settings.kafka, lineage.tell, stop, print])
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        lineage.close()


def write(kafka, *events):
    kafka.write(STREAMING_METRICS.name, *map(orjson.dumps, events))


def test_a_run_is_told_from_its_start_to_its_end_with_what_it_reads_and_writes(kafka):
    with webhook(201) as (address, sent), following(kafka, address, pytest.fail):
        eventually(lambda: write(kafka, STARTED) or sent, "the start")  # only what comes after it has opened the topic
        write(kafka, {"event": "started"}, {"event": []}, BATCH, BATCH, FAILED, STOPPED)
        eventually(lambda: sent[-1]["eventType"] == "COMPLETE", "the end")
    start, *others = (event for event in sent if event["eventType"] != "START" or event is sent[0])
    assert [(event["eventType"], event["job"]["name"], event["run"]["runId"]) for event in (start, *others)] == [
        ("START", "nest-camera-stats", RUN),
        ("RUNNING", "nest-archive", OTHER_RUN),
        ("FAIL", "nest-camera-stats", RUN),
        ("COMPLETE", "nest-archive", OTHER_RUN),
    ]
    broker = f"kafka://{kafka.settings.bootstrap_servers}"
    assert [(of["namespace"], of["name"]) for of in (*start["inputs"], *start["outputs"])] == [
        (broker, "nest-logs"),
        (broker, "nest-camera-stats"),
    ]
    assert [
        (of["name"], of["type"], [inner["name"] for inner in of["fields"]]) for of in start["outputs"][0]["facets"]["schema"]["fields"]
    ] == [
        ("zip_code", "string", []),
        ("window", "struct", ["start", "end"]),
        ("count", "bigint", []),
    ]
    assert [(of["namespace"], of["name"]) for of in others[0]["outputs"]] == [("file", str(kafka.settings.lake / "nest" / "cameras"))]
    assert others[1]["run"]["facets"]["errorMessage"]["message"] == "boom"


@pytest.fixture
def specified():
    """Fails unless a part of an event is as the schema says that the part names, in the specification at openlineage.io."""

    @functools.cache
    def schema(address):
        with urllib.request.urlopen(address, timeout=30) as answer:
            return Resource.from_contents(json.load(answer))

    try:
        schema(RunEvent._get_schema().partition("#")[0])
    except OSError as error:
        pytest.skip(f"not possible on this machine: the specification of OpenLineage cannot be downloaded ({error})")

    def check(part, address):
        registry = Registry(retrieve=schema)
        Draft202012Validator({"$ref": address}, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER).validate(part)

    return check


def test_events_and_their_facets_are_as_the_specification_says(kafka, specified):
    with webhook(201) as (address, sent):
        with patch.dict(os.environ, {"OPENLINEAGE_URL": address}):
            lineage = Lineage(kafka.settings, pytest.fail)
        for event in (STARTED, BATCH, FAILED, STOPPED):
            lineage.tell(event | {"time": datetime(2026, 1, 1, tzinfo=UTC)})
        lineage.close()
    facets = 0
    for event in sent:
        specified(event, event["schemaURL"])
        for part in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
            for facet in part.get("facets", {}).values():
                specified(facet, facet["_schemaURL"])
                facets += 1
    assert (len(sent), facets > len(sent)) == (4, True)


def test_a_refusal_is_told_without_the_password_of_the_address(kafka):
    said = []
    with webhook(401) as (address, _), following(kafka, address.replace("://", "://user:s3cret@"), said.append):
        eventually(lambda: write(kafka, STARTED) or said, "the refusal")
    assert "401" in said[0]
    assert "s3cret" not in said[0]


def test_a_server_that_takes_nothing_is_one_line_and_later_events_are_still_sent(kafka):
    said = []
    with webhook(400, 400, 201) as (address, sent), following(kafka, address, said.append):
        eventually(lambda: write(kafka, STARTED) or len(sent) > 2, "the third event")
    assert len(said) == 1
    assert "nest-camera-stats" in said[0]


def test_a_run_whose_id_openlineage_does_not_take_is_one_line(kafka):
    said = []
    with patch.dict(os.environ, {"OPENLINEAGE_URL": "http://127.0.0.1:9"}):
        lineage = Lineage(kafka.settings, said.append)
    lineage.tell(STARTED | {"run_id": "of another program", "time": datetime(2026, 1, 1, tzinfo=UTC)})
    (line,) = said
    assert line.startswith("OpenLineage has not taken an event of nest-camera-stats: ")


def test_a_server_that_does_not_answer_holds_up_nobody(kafka, monkeypatch):
    monkeypatch.setattr("streamgauge.metrics.lineage.CLOSE_SECONDS", 0)
    answers = threading.Event()
    with webhook(201, when=answers) as (address, sent):
        with patch.dict(os.environ, {"OPENLINEAGE_URL": address}):
            lineage = Lineage(kafka.settings, pytest.fail)
        lineage._client.transport.timeout = RETRY_SECONDS
        lineage.tell(STARTED | {"time": datetime(2026, 1, 1, tzinfo=UTC)})
        lineage.close()
        answers.set()
        eventually(lambda: sent, "the event")


def test_without_a_server_of_openlineage_it_is_refused(kafka):
    assert "OPENLINEAGE_URL" in one_line_error(streamgauge("lineage", settings=kafka.settings))
