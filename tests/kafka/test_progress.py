"""What is published of queries never gets in their way: the broker is really stopped under a query that runs."""

import threading
from uuid import uuid4

import orjson
import pytest
from plain import folded, read_topic
from pyspark.sql.streaming.listener import QueryStartedEvent, QueryTerminatedEvent
from running import eventually, running_broker, settings_on_free_ports, start_server

from contract.create_topics import create_topics
from pipeline.monitoring.progress import ProgressToKafka


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker for all tests: the first ones leave it running, the last one stops it."""
    broker = running_broker(settings_on_free_ports(tmp_path_factory.mktemp("home")))
    yield broker
    broker.stop()


def test_a_query_goes_on_while_the_broker_is_away_and_is_heard_of_again_afterwards(broker, spark, tmp_path):
    settings = broker.settings
    listener = ProgressToKafka(settings)
    spark.streams.addListener(listener)
    rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    writer = rows.writeStream.queryName("rate").format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        eventually(lambda: folded(settings, "query-states").get(b"rate", {}).get("progress"), "the first batch to be told")
        broker.stop()
        before = query.lastProgress["batchId"]
        eventually(lambda: query.lastProgress["batchId"] >= before + 5, "five more batches without a broker")
        assert query.isActive

        away = query.lastProgress["batchId"]
        start_server(broker)
        create_topics(settings.kafka)  # waits for their leaders
        told = eventually(
            lambda: (found := folded(settings, "query-states")[b"rate"])["progress"]["batch_id"] > away and found,
            "a batch to be told again",
        )
        assert told["state"] == "running"
    finally:
        query.stop()
        listener.close()
        spark.streams.removeListener(listener)
    assert folded(settings, "query-states")[b"rate"]["state"] == "stopped", "the end is told before the listener goes"
    events = [orjson.loads(message.value()) for message in read_topic(settings, "streaming-metrics")]
    assert (events[0]["event"], events[-1]["event"], events[-1]["error"]) == ("started", "terminated", None)
    assert before < max(event["batch_id"] for event in events if event["event"] == "progress")


def test_closing_does_not_come_between_the_end_of_a_query_and_its_record(broker, monkeypatch):
    listener, run = ProgressToKafka(broker.settings), uuid4()
    closing = threading.Thread(target=listener.close, daemon=True)
    publish = listener._publish

    def closed_meanwhile(event, run_id, fields):
        if event == "terminated":
            closing.start()
            closing.join(2)  # it must wait for this record, so there is nothing else to wait for
        publish(event, run_id, fields)

    monkeypatch.setattr(listener, "_publish", closed_meanwhile)
    listener.onQueryStarted(QueryStartedEvent(run, run, "ends", "2026-01-01T00:00:00Z", set()))
    listener.onQueryTerminated(QueryTerminatedEvent(run, run, None, None))
    eventually(lambda: not closing.is_alive(), "the listener to be closed")
    assert folded(broker.settings, "query-states")[b"ends"]["state"] == "stopped"


def test_closing_waits_for_nobody_when_the_broker_is_away(broker, spark, tmp_path):
    listener = ProgressToKafka(broker.settings)
    spark.streams.addListener(listener)
    broker.stop()
    rows = spark.readStream.format("rate").load()
    query = rows.writeStream.queryName("rate").format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    eventually(lambda: query.lastProgress, "a batch without a broker")
    query.stop()
    closing = threading.Thread(target=listener.close, daemon=True)
    closing.start()
    eventually(lambda: not closing.is_alive(), "the listener to be closed without a broker")
    spark.streams.removeListener(listener)
