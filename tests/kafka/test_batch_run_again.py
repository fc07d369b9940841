"""A batch whose commit is missing is run again at the next start; each sink then holds what it held before."""

from dataclasses import replace
from typing import NamedTuple

import deltalake
import pyarrow.dataset as ds
import pytest
import sqlalchemy as sa
from avro import change, serialized
from plain import START, one_camera, read_topic, write_topic
from running import succeed, verify
from topic_reset import delete_subjects, empty_topics

from pipeline.catalog import known
from pipeline.checkpoint.contents import Checkpoint
from pipeline.database.connection import Database


def last_values(settings, topic):
    return {message.key(): message.value() for message in read_topic(settings, topic)}


def alerts_of_devices(settings):
    return {key: value for key, value in last_values(settings, "alerts").items() if key.startswith(b"{")}


def parquet_rows(settings, path):
    """Rows by the files that Spark's log names."""
    table = ds.dataset(settings.lake / path, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    return sorted(table.select(["partition", "offset"]).to_pylist(), key=str)


def delta_rows(settings, path):
    return sorted(deltalake.DeltaTable(settings.lake / path).to_pyarrow_table().to_pylist(), key=str)


def database_rows(settings):
    with Database.of(settings).transaction() as connection:
        return sorted(map(tuple, connection.execute(sa.text("select * from nest_camera_stats"))))


ALARM = b'{"devices": {"smoke_co_alarms": {"a1": {"last_connection": "2026-01-01T00:00:00Z", "smoke_alarm_state": "warning"}}}}'
SINKS = {
    "nest-camera-stats": lambda settings: last_values(settings, "nest-camera-stats"),
    "nest-camera-stats-database": database_rows,
    "wikimedia-edit-stats": lambda settings: last_values(settings, "wikimedia.processed"),
    "nest-alarms": alerts_of_devices,
    "nest-dead-letters": lambda settings: last_values(settings, "dead-letters"),
    "nest-archive": lambda settings: parquet_rows(settings, "nest/cameras"),
    "nest-archive-delta": lambda settings: delta_rows(settings, "nest/cameras_delta"),
    "ingest-nest-logs": lambda settings: delta_rows(settings, "nest_logs"),
}


class Runs(NamedTuple):
    """By query: what the sink held after the first run and after the second, whether the second ran its last batch again, and the verdict."""

    before: dict[str, object]
    after: dict[str, object]
    has_run_again: dict[str, bool]
    verdicts: dict[str, str]


@pytest.fixture(scope="module")
def runs(registry, tmp_path_factory):
    """All queries, run twice; in between the commit of the last batch with records is lost, as after a kill."""
    empty_topics(registry.kafka)
    delete_subjects(registry.registry_url)
    home = tmp_path_factory.mktemp("home")
    settings = replace(registry, home=home, database_url=f"sqlite:///{home}/results.db")
    write_topic(settings, "nest-logs", [*(one_camera(f"cam-{number}", START) for number in range(20)), ALARM, b"rubbish"], key=b"home")
    changes = [change(number, at=int(START.timestamp()) + number) for number in range(20)]
    write_topic(settings, "wikimedia", serialized(settings, changes), partitions=3)

    run(settings)
    before = {query: held(settings) for query, held in SINKS.items()}
    checkpoints = {query.name: Checkpoint(query.checkpoint_name.folder(settings)) for query in known(settings) if query.name in SINKS}
    lost = {query: lose_last_batch(checkpoint) for query, checkpoint in checkpoints.items()}
    run(settings)
    return Runs(
        before,
        after={query: held(settings) for query, held in SINKS.items()},
        has_run_again={query: checkpoints[query].last_committed >= number for query, number in lost.items()},
        verdicts={query: outcome["verdict"] for query, outcome in verify(*SINKS, settings=settings).items()},
    )


def run(settings):
    for command in (("run", *(query for query in SINKS if query != "ingest-nest-logs")), ("ingest", "nest-logs")):
        succeed(*command, "--once", settings=settings)


def lose_last_batch(checkpoint):
    """Removes what the checkpoint says of the last batch with records, but its plan; returns its number."""
    with_rows = max(
        number for number in checkpoint.planned if number == 0 or checkpoint.batch(number).ends != checkpoint.batch(number - 1).ends
    )
    for number in range(with_rows, checkpoint.last_committed + 1):
        (checkpoint.folder / "commits" / str(number)).unlink()
    for number in range(with_rows + 1, checkpoint.planned[-1] + 1):
        (checkpoint.folder / "offsets" / str(number)).unlink()
    assert checkpoint.last_committed < with_rows
    return with_rows


@pytest.mark.parametrize("query", SINKS)
def test_a_batch_without_its_commit_is_run_again_and_changes_nothing(runs, query):
    assert runs.before[query], "the first run has written nothing, so that this test shows nothing"
    assert runs.has_run_again[query], "the batch was not run again, so that this test shows nothing"
    assert runs.after[query] == runs.before[query]
    assert runs.verdicts[query] == "right"
