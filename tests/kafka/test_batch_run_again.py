"""A batch whose commit is missing is run again at the next start; each sink then holds what it held before."""

import json

import deltalake
import pytest
from avro import V1, change
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from plain import START, one_camera, read_topic, write_topic
from running import streamgauge

from contract.storage.checkpoint_names import CheckpointName
from pipeline.checkpoint.contents import Checkpoint


def last_values(settings, topic):
    return {message.key(): message.value() for message in read_topic(settings, topic)}


def parquet_rows(settings, path):
    """Rows by the files that Spark's log names."""
    import pyarrow.dataset as ds

    table = ds.dataset(settings.lake / path, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    return sorted(table.select(["partition", "offset"]).to_pylist(), key=str)


def delta_rows(settings, path):
    return sorted(deltalake.DeltaTable(settings.lake / path).to_pyarrow_table().to_pylist(), key=str)


ALARM = b'{"devices": {"smoke_co_alarms": {"a1": {"last_connection": "2026-01-01T00:00:00Z", "smoke_alarm_state": "warning"}}}}'
SINKS = {
    "nest-camera-stats": ("update", lambda settings: last_values(settings, "nest-camera-stats")),
    "wikimedia-edit-stats": ("update", lambda settings: last_values(settings, "wikimedia.processed")),
    "nest-alarms": ("update", lambda settings: last_values(settings, "alerts")),
    "nest-dead-letters": ("append", lambda settings: last_values(settings, "dead-letters")),
    "nest-archive": ("append", lambda settings: parquet_rows(settings, "nest/cameras")),
    "nest-archive-delta": ("append", lambda settings: delta_rows(settings, "nest/cameras_delta")),
    "ingest-nest-logs": ("append", lambda settings: delta_rows(settings, "nest_logs")),
}


@pytest.mark.parametrize("query", SINKS)
def test_a_batch_without_its_commit_is_run_again_and_changes_nothing(fresh_registry, query):
    mode, held = SINKS[query]
    command = ("ingest", "nest-logs") if query.startswith("ingest-") else ("run", query)
    if query.startswith("wikimedia-"):
        serialize = AvroSerializer(SchemaRegistryClient({"url": fresh_registry.registry_url}), V1)
        context = SerializationContext("wikimedia", MessageField.VALUE)
        values = [serialize(change(number, at=int(START.timestamp()) + number), context) for number in range(20)]
        write_topic(fresh_registry, "wikimedia", values, partitions=3)
    else:
        values = [*(one_camera(f"cam-{number}", START) for number in range(20)), ALARM, b"rubbish"]
        write_topic(fresh_registry, "nest-logs", values, key=b"home")

    def run():
        done = streamgauge(*command, "--once", settings=fresh_registry)
        assert done.returncode == 0, done.stderr

    run()
    before = held(fresh_registry)
    assert before, "the first run has written nothing, so that this test shows nothing"
    checkpoint = Checkpoint(CheckpointName(query, 1, mode).folder(fresh_registry))
    with_rows = max(
        number for number in checkpoint.planned if number == 0 or checkpoint.batch(number).ends != checkpoint.batch(number - 1).ends
    )
    for number in range(with_rows, checkpoint.last_committed + 1):
        (checkpoint.folder / "commits" / str(number)).unlink()
    for number in range(with_rows + 1, checkpoint.planned[-1] + 1):
        (checkpoint.folder / "offsets" / str(number)).unlink()
    assert checkpoint.last_committed < with_rows

    run()
    assert checkpoint.last_committed >= with_rows, "the batch was not run again, so that this test shows nothing"
    assert held(fresh_registry) == before
    verified = json.loads(streamgauge("verify", query, "--format", "json", settings=fresh_registry).stdout)
    assert [outcome["verdict"] for outcome in verified] == ["right"], verified
