"""Verdicts on what is in Kafka: topics and checkpoints in, verdicts out. The broker is the one that librdkafka has for tests, without Java."""

import json
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer

from audit.commands import verdicts_of
from contract.checkpoints.names import CheckpointName
from contract.errors import StreamgaugeError
from contract.settings import Settings

STATS, LETTERS = "nest-camera-stats", "nest-dead-letters"
WINDOW = {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}
TEN_MS = 1_767_261_600_000


class Kafka:
    """A broker with empty topics, and the checkpoints of queries that have read from it. settings: of programs that use both."""

    def __init__(self, home: Path) -> None:
        self._producer = Producer({"test.mock.num.brokers": 1})
        for topic in (STATS, "nest-logs", "dead-letters"):
            metadata = self._producer.list_topics(topic, timeout=10)
        (broker,) = metadata.brokers.values()
        self.settings = replace(Settings(), kafka_bootstrap_servers=f"{broker.host}:{broker.port}", home=home)

    def write(self, topic, *values, key=None, partition=0):
        for value in values:
            self._producer.produce(topic, value, key, partition=partition, timestamp=TEN_MS + 3_600_000)
        assert self._producer.flush(10) == 0

    def write_count(self, zip_code, count):
        """A row of the result. count: None deletes it."""
        key = json.dumps({"window": dict(sorted(WINDOW.items())), "zip_code": zip_code}, separators=(",", ":"))
        row = None if count is None else orjson.dumps({"zip_code": zip_code, "window": WINDOW, "count": count})
        self.write(STATS, row, key=key)

    def has_run(self, query, *ends, mode, committed):
        """The query has planned a batch up to each of these offsets, and committed so many of them."""
        folder = Path(str(CheckpointName(query, 1, mode).folder(self.settings)))
        for name in ("offsets", "commits", "sources/0"):
            (folder / name).mkdir(parents=True)
        (folder / "metadata").write_text('{"id":"of this query"}')
        (folder / "sources" / "0" / "0").write_text('v1\n{"nest-logs":{"0":0}}')
        for number, end in enumerate(ends):
            plan = ("v1", '{"batchWatermarkMs":0}', json.dumps({"nest-logs": {"0": end}}))
            (folder / "offsets" / str(number)).write_text("\n".join(plan))
        for number in range(committed):
            (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')

    def verdict(self, query):
        (verdict,) = verdicts_of([query], self.settings)
        return verdict


@pytest.fixture
def kafka(tmp_path):
    return Kafka(tmp_path)


def seen(camera, time="10:00:00"):
    return orjson.dumps({"devices": {"cameras": {camera: {"last_event": {"has_person": True, "start_time": f"2026-01-01T{time}Z"}}}}})


def test_a_table_is_right_if_it_holds_what_its_records_give_and_else_the_row_is_named(kafka):
    kafka.write("nest-logs", seen("a"), seen("a"), seen("b"), b"broken")
    kafka.has_run(STATS, 4, mode="update", committed=1)
    kafka.write_count("unknown", 2)
    found = kafka.verdict(STATS)
    assert (found.verdict, found.records, found.rows.equal, found.lateness.events) == ("right", 4, 1, 2), found
    kafka.write_count("unknown", 3)
    kafka.write_count("94301", 1)
    found = kafka.verdict(STATS)
    assert {one.kind: (one.expected and one.expected["count"], one.found["count"]) for one in found.differences} == {
        "different": (2, 3),
        "extra": (None, 1),
    }


def test_of_a_batch_under_way_a_row_may_be_there_or_not_and_no_other(kafka):
    kafka.write("nest-logs", seen("a"), seen("b"))
    kafka.has_run(STATS, 1, 2, mode="update", committed=1)
    for count, verdict in ((1, "right"), (2, "right"), (3, "wrong"), (None, "wrong")):
        kafka.write_count("unknown", count)
        assert kafka.verdict(STATS).verdict == verdict, count


def test_in_real_time_mode_a_row_may_be_ahead_also_by_a_partition_that_no_checkpoint_knows(kafka):
    kafka.settings = replace(kafka.settings, real_time="5 seconds")
    kafka.write("nest-logs", seen("a"), seen("b"))
    kafka.write("nest-logs", seen("c"), partition=1)
    kafka.has_run(STATS, 1, mode="real-time", committed=1)
    for count, kind in ((1, "equal"), (2, "ahead"), (3, "equal"), (4, "different")):
        kafka.write_count("unknown", count)
        found = kafka.verdict(STATS)
        assert (found.records, getattr(found.rows, kind)) == (1, 1), (count, found)


def test_a_letter_that_is_missing_is_named_by_its_record(kafka):
    kafka.write("nest-logs", seen("a"), b"broken")
    kafka.has_run(LETTERS, 2, mode="append", committed=1)
    (missing,) = kafka.verdict(LETTERS).differences
    assert (missing.kind, missing.where, missing.expected.reasons) == ("missing", "nest-logs-0 offset 1", ["not JSON"])


def test_a_topic_that_was_created_anew_cannot_be_checked(kafka):
    kafka.write("nest-logs", seen("a"))
    kafka.has_run(STATS, 2, mode="update", committed=1)
    found = kafka.verdict(STATS)
    assert found.verdict == "not checked"
    assert "was recreated" in found.problem


def test_a_query_that_nobody_audits_is_not_checked_and_one_that_has_not_run_is_an_error(kafka):
    kafka.has_run("somebodys-query", 0, mode="append", committed=1)
    assert kafka.verdict("somebodys-query").problem == "what it writes is not audited"
    with pytest.raises(StreamgaugeError, match="nest-camera-stats has not run with STREAMGAUGE_HOME"):
        kafka.verdict(STATS)
