"""Queries in Spark's real-time mode: on the worker's session, and in a process of their own where they are killed."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from avro import V2, change, serialized, with_field
from confluent_kafka.admin import AdminClient, NewPartitions
from plain import START, dropped, folded, one_camera, read_topic, results, write_topic
from running import below, environment, eventually, few_rows, running_queries, succeed, verify

from contract.checkpoints.contents import Checkpoint
from contract.query_status import read_statuses
from pipeline.catalog import chosen
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.running.run import Starter

PROGRAM = (sys.executable, "-m", "streamgauge.cli")
QUERY, LETTERS = "nest-camera-stats", "nest-dead-letters"


@pytest.fixture
def real_time(fresh):
    return replace(fresh, real_time="5 seconds")


def verified(settings, query=QUERY):
    return verify(query, settings=settings)[query]


@contextmanager
def running(settings, *queries):
    """The queries, or QUERY, and their dead letters, until the end of the block; gives what they say. Fails if one had to be cut off."""
    with running_queries(*(queries or (QUERY,)), settings=settings) as said:
        yield said
    assert not any("cut off" in line for line in said), said


@contextmanager
def killed_at_the_end(settings, *queries):
    """The queries in a process of their own, which is killed at the end of the block."""
    with subprocess.Popen([*PROGRAM, "run", *queries], env=environment(few_rows(settings))) as pipeline:
        try:
            yield pipeline
        finally:
            pipeline.kill()


def checkpoint_of(settings, query=QUERY):
    return Checkpoint(Path(settings.checkpoints) / f"{query}-v1-real-time")


def records_in(checkpoint):
    batch = checkpoint.batch(checkpoint.last_committed)
    return sum(batch.ends.values()) if batch else 0


def checkpointed(settings, query=QUERY):
    """Waits until what is counted now is in a checkpoint, and the watermark follows it."""
    last = checkpoint_of(settings, query).last_committed
    eventually(lambda: checkpoint_of(settings, query).last_committed > last + 1, "two checkpoints")


def see(settings, hour, partition):
    """A sighting, by a camera of its own, in an hour of the first day; and its count."""
    write_topic(settings, "nest-logs", [one_camera(f"cam-{hour}-{partition}", START + timedelta(hours=hour))], to=partition)
    window = f"{START + timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ}"
    eventually(lambda: results(settings).get(("unknown", window)), f"the sighting at {hour}:00 on partition {partition}")


def edits(settings):
    return sum(row["edits"] for row in folded(settings, "wikimedia-wiki-stats").values())


def frozen_ahead(pipeline, checkpoint, settings):
    """Spark's JVM, frozen when there are rows after its last checkpoint."""
    (driver,) = below(pipeline.pid, "java")
    committed = checkpoint.last_committed
    counted = sum(results(settings).values())
    eventually(lambda: sum(results(settings).values()) > counted, "more rows")
    driver.suspend()
    if checkpoint.last_committed == committed:
        return driver
    driver.resume()
    return None


def test_killed_in_the_middle_of_a_batch_the_result_is_ahead_of_the_checkpoint_and_exact_after_a_restart(real_time):
    checkpoint, letters = checkpoint_of(real_time), checkpoint_of(real_time, LETTERS)
    produce = [*PROGRAM, "produce", "nest", "--rate", "200", "--speed-up", "60"]
    with killed_at_the_end(real_time, QUERY, LETTERS) as pipeline:
        eventually(lambda: min(checkpoint.last_committed, letters.last_committed) >= 0, "the first checkpoints")
        with subprocess.Popen(produce, env=environment(real_time)) as producer:
            try:
                eventually(lambda: results(real_time), "the first row")
                eventually(lambda: frozen_ahead(pipeline, checkpoint, real_time), "rows after a checkpoint").kill()
            finally:
                producer.send_signal(signal.SIGINT)
    documents = len(read_topic(real_time, "nest-logs"))
    killed = verified(real_time)
    assert (killed["verdict"], killed["records"] < documents) == ("right", True)

    killed_in, letters_in = checkpoint.last_committed + 1, letters.last_committed
    with running(real_time, QUERY, LETTERS) as said:
        eventually(lambda: letters.last_committed > letters_in, "a checkpoint of the dead letters")
        eventually(lambda: records_in(checkpoint) == documents, "a checkpoint of all documents")
    assert sum(checkpoint.batch(killed_in).ends.values()) == documents, "the first batch after the kill is not all that had come"
    assert f"{QUERY} catches up" in said
    assert f"{LETTERS} catches up" not in said, "it has no watermark, so no record can be too late for its next batch"

    outcome = verified(real_time)
    assert (outcome["verdict"], outcome["records"], outcome["rows"]["ahead"]) == ("right", documents, 0)


def test_the_state_of_a_query_can_be_read_while_it_runs(real_time):
    with running(real_time):
        see(real_time, 1, 0)
        checkpointed(real_time)
        last = checkpoint_of(real_time).last_committed
        state = succeed("state", QUERY, "--rows", settings=real_time).stdout
        changes = succeed("state", QUERY, "--changes", "0", str(last), settings=real_time).stdout
    assert [text.count("cam-1-0") for text in (state, changes)] == [1, 1]


def test_killed_before_its_first_checkpoint_a_query_starts_again_and_counts_all(real_time):
    with killed_at_the_end(replace(real_time, real_time="1 hour"), QUERY):
        see(real_time, 1, 0)
    assert checkpoint_of(real_time).last_committed == -1, "the kill was to come before a checkpoint"
    with running(real_time):
        see(real_time, 2, 1)
        eventually(lambda: records_in(checkpoint_of(real_time)) == 2, "a checkpoint of both documents")
    outcome = verified(real_time)
    assert (outcome["verdict"], outcome["records"], sum(results(real_time).values())) == ("right", 2, 2)


def test_a_partition_that_is_hours_behind_another_loses_nothing(real_time):
    with running(real_time):
        see(real_time, 1, 0)
        see(real_time, 20, 1)
        see(real_time, 19, 2)
        checkpointed(real_time)
        see(real_time, 2, 0)
    assert dropped(real_time, QUERY) == 0

    succeed("run", QUERY, "--once", settings=real_time)
    outcome = verified(real_time)
    assert (outcome["verdict"], outcome["records"], outcome["rows"]["ahead"]) == ("right", 4, 0)


def test_an_added_partition_is_read_after_a_restart_and_nothing_twice(real_time, monkeypatch):
    monkeypatch.setattr("pipeline.running.runner.SOURCES_SECONDS", 1)
    admin = AdminClient({"bootstrap.servers": real_time.bootstrap_servers})
    with running(real_time):
        see(real_time, 1, 0)
        checkpointed(real_time)
        admin.create_partitions([NewPartitions("nest-logs", 4)])["nest-logs"].result()
        see(real_time, 2, 3)
    outcome = verified(real_time)
    assert (outcome["verdict"], sum(results(real_time).values())) == ("right", 2)


def test_between_checkpoints_the_lag_is_as_of_now_and_there_is_no_batch_time_and_a_stop_waits_for_none(real_time):
    settings = replace(real_time, real_time="1 hour")

    def status():
        (found,) = [one for one in read_statuses(settings, pytest.fail) if one.query == QUERY]
        return found

    with running(settings):
        for hour in (1, 2, 3):
            see(settings, hour, 0)
            eventually(lambda: status().lag == 0, "a status that knows of the sighting")
        assert checkpoint_of(settings).last_committed == -1, "the status was to know it before a checkpoint"
        assert status().batch_ms is None
    assert checkpoint_of(settings).last_committed == -1, "the stop was to come before a checkpoint"


def test_dead_letters_are_written_at_once(real_time):
    poison = [b"{", None, b"\xff\xfe", b"[]", b'{"devices": 7}']
    with running(real_time):
        see(real_time, 1, 0)
        write_topic(real_time, "nest-logs", poison)
        eventually(lambda: len(read_topic(real_time, "dead-letters")) == len(poison), "the dead letters")
        see(real_time, 2, 0)
        checkpointed(real_time, LETTERS)
    assert verified(real_time, LETTERS)["verdict"] == "right"


def test_a_new_schema_is_read_an_unknown_one_is_a_dead_letter_and_four_queries_stop_at_once(real_time, fresh_registry):
    def write(values):
        write_topic(real_time, "wikimedia", values)

    noon = round(START.timestamp()) + 12 * 3600
    with running(real_time, QUERY, "wikimedia-wiki-stats"):
        write(serialized(fresh_registry, [change(1, at=noon)]))
        eventually(lambda: edits(real_time) == 1, "the edit of the first schema")
        (newer,) = serialized(fresh_registry, [change(2, at=noon)], V2)
        unknown = b"\x00" + (4711).to_bytes(4, "big") + newer[5:]
        write([newer, unknown])
        eventually(lambda: edits(real_time) == 2, "the edit of the second schema")
        eventually(lambda: [letter.value() for letter in read_topic(real_time, "dead-letters")] == [unknown], "the dead letter")
        coming = b"\x00" + (int.from_bytes(newer[1:5], "big") + 1).to_bytes(4, "big") + newer[5:]
        write([coming])
        eventually(
            lambda: coming in [letter.value() for letter in read_topic(real_time, "dead-letters")], "the dead letter of an id to come"
        )
        (newest,) = serialized(fresh_registry, [change(3, at=noon)], with_field("seen", "string", default="no"))
        assert newest[:5] == coming[:5], "the registry gives the next id"
        write([newest])
        eventually(lambda: edits(real_time) == 3, "the edit of the schema whose id the registry did not have before")
        checkpointed(real_time, "wikimedia-wiki-stats")
    assert verified(real_time, "wikimedia-wiki-stats")["verdict"] == "right"


@pytest.mark.parametrize(("catches_up", "ids"), [(False, [5, 4]), (True, [4])])
def test_a_batch_in_real_time_mode_may_fail_at_a_record_beyond_the_end_that_spark_names(real_time, fresh_registry, spark, catches_up, ids):
    (value,) = serialized(fresh_registry, [change(1, at=0)])
    write_topic(real_time, "wikimedia", [b"\x00" + number.to_bytes(4, "big") + value[5:] for number in (4, 5, 5)], to=0)
    query = chosen(["wikimedia-wiki-stats"], real_time)[0]
    error = Mock(**{"startOffset.return_value": "[-]", "endOffset.return_value": '[{"wikimedia":{"0":1,"1":0,"2":0}}]'})
    failed = Mock(schemas=WriterSchemas(V2), catches_up=catches_up, **{"running._jsq.exception.return_value.get.return_value": error})
    starter = Starter(spark, real_time, Mock(), pytest.fail, once=False)
    assert starter.new_schema_ids(query, failed, []) == ids
