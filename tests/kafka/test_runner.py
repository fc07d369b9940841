"""Small queries on the real runner: what one of them fails with is no failure of the others."""

import json
import os
import shutil
import signal
import threading
import uuid
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import pytest
from confluent_kafka import Producer, TopicPartition
from plain import folded, read_topic, write_topic
from running import eventually, kafka_client_threads

from contract.checkpoints.contents import Checkpoint, known_batches
from contract.create_topics import create_topics
from contract.query_status import read_statuses
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.process.stop_signals import Stopped, StopRequest, stop_requested
from pipeline.monitoring.producers import OPEN, THREAD, Producers
from pipeline.query import Query
from pipeline.running.runner import Runner
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import KafkaTopic
from pipeline.sources.watermarks import Watermark


@pytest.fixture
def platform(settings, tmp_path):
    """The worker's broker, with a home of the test's own."""
    return replace(settings, home=tmp_path, restart_limit=1)


def topic(platform, *, is_created=True):
    """A topic of the test's own."""
    made = Topic(f"runner-{uuid.uuid4()}", partitions=1)
    if is_created:
        create_topics(platform.kafka, [made])
    return made


def copying(source, result, name="copies", transform=lambda rows: rows):
    """A query that writes each value of `source` as a row of `result`."""
    return Query(
        name,
        source=KafkaTopic(source.name),
        decode=lambda records: records.selectExpr("cast(value AS string) AS value"),
        transform=transform,
        sink=CompactedTopic(result, ("value",)),
        mode="append",
    )


def run_once(spark, platform, *queries):
    """Runs the queries over what is there; gives what the runner said, and last the error that it ended with."""
    said = []
    try:
        Runner(spark, platform, said.append, once=True).run(queries)
    except StreamgaugeError as error:
        said.append(f"error: {error}")
    return said


def values(platform, result):
    return sorted(row["value"] for row in folded(platform, result.name).values())


def fails_in_java(rows):
    rows.sparkSession.sparkContext._jvm.java.lang.Integer.parseInt("many")


def fails_in_python(_):
    msg = "LocationID '' is no number\nin line 3"
    raise ValueError(msg)


@pytest.mark.parametrize(
    ("transform", "reason"),
    [
        (fails_in_python, "ValueError: LocationID '' is no number"),
        (fails_in_java, 'NumberFormatException: For input string: "many"'),
        (lambda rows: rows.select("size"), "UNRESOLVED_COLUMN"),
        (lambda rows: rows.groupBy("value").count(), "cannot run in mode append"),
    ],
    ids=["python", "java", "plan", "mode"],
)
def test_a_query_that_cannot_be_started_is_given_up_and_the_others_run(spark, platform, transform, reason):
    source, result = topic(platform), topic(platform)
    write_topic(platform, source.name, [b"a", b"b"])
    said = run_once(spark, platform, copying(source, result, "broken", transform), copying(source, result))
    assert values(platform, result) == ["a", "b"], "the sound query has to run, though the one before it cannot"
    assert said[-1].startswith("error: query broken given up: "), said
    assert reason in said[-1], said
    assert not any("\n" in line for line in said), "each is one line"


def test_the_producer_that_has_written_is_seen_with_its_thread(spark, platform):
    source, result = topic(platform), topic(platform)
    write_topic(platform, source.name, [b"a"])
    run_once(spark, platform, copying(source, result))
    producers = Producers(spark)
    assert set(OPEN.findall(producers.open())) & set(THREAD.findall(producers.threads()))
    assert not producers.have_died()


def test_a_checkpoint_with_an_empty_file_is_named_and_the_other_queries_run(spark, platform):
    source, result = topic(platform), topic(platform)
    write_topic(platform, source.name, [b"a"])
    broken = copying(source, result, "broken")
    damaged = broken.checkpoint_name.folder(platform)
    for name in ("offsets", "commits"):
        (damaged / name).mkdir(parents=True)
        (damaged / name / "0").touch()
    said = run_once(spark, platform, broken, copying(source, result))
    assert values(platform, result) == ["a"]
    assert said[-1].startswith(f"error: query broken given up: {damaged}/offsets/0 is damaged"), said


def test_a_result_topic_that_is_gone_is_named_and_the_query_given_up_after_the_limit(spark, platform):
    source, gone = topic(platform), topic(platform, is_created=False)
    write_topic(platform, source.name, [b"a"])
    name = f"copies-{uuid.uuid4()}"
    said = run_once(spark, platform, copying(source, gone, name))
    assert said[-1].startswith(f"error: query {name} given up: failed 2 times without a batch in between: "), said
    assert f"has no topic {gone.name}; correct the name, or create it" in said[-1]
    raised = [json.loads(message.value()) for message in read_topic(platform, "alerts") if message.key() == name.encode()]
    assert [alert["level"] for alert in raised] == ["warning", "error"]
    assert all(gone.name in alert["what"] for alert in raised)


def test_a_record_whose_timestamp_spark_cannot_read_is_named_with_the_way_out(spark, platform):
    source, result = topic(platform, is_created=False), topic(platform)
    create_topics(platform.kafka, [replace(source, config={"message.timestamp.after.max.ms": str(2**63 - 1)})])
    producer = Producer({"bootstrap.servers": platform.bootstrap_servers})
    now, in_nanoseconds = 0, 1_763_000_000_000_000_000
    for value, timestamp in (("a", now), ("b", in_nanoseconds), ("c", now)):
        producer.produce(source.name, value, timestamp=timestamp)
    assert producer.flush(60) == 0
    said = run_once(spark, platform, copying(source, result))
    assert said[-1].startswith(f"error: query copies given up: record {source.name}-0 @ 1 has Kafka timestamp {in_nanoseconds}; "), said
    with platform.kafka.admin() as admin:
        for done in admin.delete_records([TopicPartition(source.name, 0, 2)]).values():
            done.result()
    assert run_once(spark, replace(platform, fail_on_data_loss=False), copying(source, result)) == ["copies runs"]
    assert values(platform, result) == ["c"]


def test_a_topic_that_is_recreated_while_a_query_reads_it_is_noticed(spark, platform, monkeypatch):
    monkeypatch.setattr("pipeline.running.runner.SOURCES_SECONDS", 0)
    source, result = topic(platform), topic(platform)
    write_topic(platform, source.name, [b"a"])
    admin = platform.kafka.admin()

    def say(line):
        if line == "copies runs":
            eventually(lambda: values(platform, result) == ["a"], "the first batch")
            admin.delete_topics([source.name])[source.name].result()
            eventually(lambda: source.name not in admin.list_topics().topics, "the topic to be gone")
            create_topics(platform.kafka, [source])
            write_topic(platform, source.name, [b"b"] * 10)

    told = f"query copies given up: topic {source.name} was deleted and recreated. Two ways out: "
    with pytest.raises(StreamgaugeError, match=told):
        Runner(spark, platform, say).run([replace(copying(source, result), trigger_seconds=3600)])


def test_a_result_topic_that_is_created_in_time_is_written(spark, platform):
    source, late = topic(platform), topic(platform, is_created=False)
    write_topic(platform, source.name, [b"a"])
    said = []

    def say(line):
        said.append(line)
        create_topics(platform.kafka, [late])

    Runner(spark, platform, say, once=True).run([copying(source, late)])
    assert values(platform, late) == ["a"]
    assert f"has no topic {late.name}" in said[0]


def test_a_version_that_was_raised_recounts_from_the_start(spark, platform):
    source, result, recounted = (topic(platform) for _ in range(3))
    write_topic(platform, source.name, [b"a"])
    first = copying(source, result)
    assert run_once(spark, platform, first) == ["copies runs"]
    write_topic(platform, source.name, [b"b"])
    said = run_once(spark, platform, replace(first, version=2, sink=CompactedTopic(recounted, ("value",))))
    assert said == ["copies recounts from the start as version 2; checkpoint copies-v1-append is kept", "copies runs"]
    assert values(platform, recounted) == ["a", "b"]
    assert values(platform, result) == ["a"]
    assert run_once(spark, platform, first) == ["copies runs"], "the old version still has its own checkpoint"
    assert values(platform, result) == ["a", "b"]


def test_another_mode_recounts_from_the_start_and_says_so(spark, platform):
    source, result = topic(platform), topic(platform)
    write_topic(platform, source.name, [b"a"])
    assert run_once(spark, platform, copying(source, result)) == ["copies runs"]
    said = run_once(spark, platform, replace(copying(source, result), mode="update"))
    assert said == ["copies recounts from the start in mode update; checkpoint copies-v1-append is kept", "copies runs"]


@dataclass(frozen=True)
class Gate:
    """A sink, each batch of which waits until the test lets it pass."""

    entered: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)
    passed: list[str] = field(default_factory=list)

    def writer(self, rows, _):
        return rows.writeStream.foreachBatch(self._pass)

    def last_batch(self, *_):
        return None

    def _pass(self, batch, _):
        self.entered.set()
        assert self.opened.wait(120), "the test did not let the batch pass"
        self.passed.extend(row.value for row in batch.collect())


@pytest.mark.parametrize("once", [False, True])
def test_sigterm_lets_the_batch_under_way_finish(spark, platform, once):
    source, gate, said = topic(platform), Gate(), []
    write_topic(platform, source.name, [b"a", b"b"])
    query = replace(copying(source, source, "gated"), sink=gate)

    def say(line):
        said.append(line)
        if line.startswith("stopping: gated"):
            gate.opened.set()

    def terminate():
        assert gate.entered.wait(120)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=terminate, daemon=True).start()
    with pytest.raises(Stopped, match="SIGTERM") if once else nullcontext() as ended:
        Runner(spark, platform, say, stop_requested(), once=once).run([query])
    assert ended is None or ended.value.exit_code == 128 + signal.SIGTERM
    assert said == ["gated runs", "stopping: gated may take up to 10 s to finish a batch"]
    assert sorted(gate.passed) == ["a", "b"]
    assert Checkpoint(query.checkpoint_name.folder(platform)).last_committed == 0, "the batch must be committed, and not run again"


def test_a_query_with_nothing_to_do_lets_the_next_one_start(spark, platform, monkeypatch):
    monkeypatch.setattr("pipeline.running.runner.FIRST_BATCH_SECONDS", 3600)
    source, result, said, stop = topic(platform), topic(platform), [], StopRequest()

    def say(line):
        said.append(line)
        if line == "second runs":
            stop.set()

    Runner(spark, platform, say, stop).run([copying(source, result, "first"), copying(source, result, "second")])
    assert said[:2] == ["first runs", "second runs"]


def test_a_query_that_waits_until_another_has_begun_is_starting_and_is_stopped_when_the_run_ends(spark, platform, monkeypatch):
    monkeypatch.setattr("pipeline.running.runner.FIRST_BATCH_SECONDS", 3600)
    source, gate, stop, name = topic(platform), Gate(), StopRequest(), f"later-{uuid.uuid4()}"
    write_topic(platform, source.name, [b"a"])
    seen = []

    def state():
        return next((status.state for status in read_statuses(platform, print) if status.query == name), None)

    def look():
        seen.append(gate.entered.wait(120) and state())
        stop.set()
        gate.opened.set()

    threading.Thread(target=look, daemon=True).start()
    Runner(spark, platform, stop_requested=stop).run([replace(copying(source, source, "gated"), sink=gate), copying(source, source, name)])
    assert (seen, state()) == (["starting"], "stopped")


def test_a_batch_is_in_the_journal_when_it_is_done_and_no_plan_of_it_is_left(spark, platform):
    source, result = topic(platform), topic(platform)
    query = replace(copying(source, result), watermark=Watermark("at"), decode=lambda records: records.selectExpr(
        "cast(value AS string) AS value", "timestamp AS at", "topic", "partition", "offset"
    ), transform=lambda rows: rows.select("value"))  # fmt: skip
    write_topic(platform, source.name, [b"a"])
    assert run_once(spark, platform, query) == ["copies runs"]
    place = query.checkpoint_name.place(platform)
    planned = [batch for number in Checkpoint(place.folder).planned if (batch := Checkpoint(place.folder).batch(number))]
    shutil.rmtree(place.folder / "offsets")
    assert known_batches(place) == planned
    assert planned[0].ends == {(source.name, 0): 1}


def test_no_kafka_client_outlives_a_run(spark, platform):
    source, result = topic(platform), topic(platform)
    write_topic(platform, source.name, [b"a"])
    before = kafka_client_threads()
    run_once(spark, platform, copying(source, result))
    assert folded(platform, result.name)
    eventually(lambda: kafka_client_threads() <= before, "the threads of the clients to end")
