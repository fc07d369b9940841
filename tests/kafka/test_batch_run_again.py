"""A batch whose commit is missing is run again at the next start; each sink then holds what it held before."""

from dataclasses import replace
from typing import NamedTuple

import deltalake
import pyarrow.dataset as ds
import pytest
import sqlalchemy as sa
from avro import change, serialized
from kills import lose_last_batch
from plain import START, one_camera, read_topic, write_topic
from running import succeed
from topic_reset import delete_subjects, empty_topics
from verifying import run_once

from contract.checkpoints.contents import Checkpoint
from contract.create_topics import create_topics
from contract.topics import Topic
from infrastructure.database import Database
from infrastructure.lake_environment import HAS_DELTA
from pipeline.catalog import all_queries


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
}
OF_DELTA = {
    "nest-archive-delta": lambda settings: delta_rows(settings, "nest/cameras_delta"),
    "ingest-nest-logs": lambda settings: delta_rows(settings, "nest_logs"),
    "ingest-clicks": lambda settings: delta_rows(settings, "clicks"),
}
HERE = OF_DELTA if HAS_DELTA else SINKS


class Runs(NamedTuple):
    """By query: what the sink held after the first run and after the second, and whether the second ran its last batch again."""

    before: dict[str, object]
    after: dict[str, object]
    has_run_again: dict[str, bool]


@pytest.fixture(scope="module")
def runs(registry, tmp_path_factory):
    """All queries of this environment, run twice; in between the commit of the last batch with records is lost, as after a kill."""
    empty_topics(registry.kafka)
    delete_subjects(registry.registry_url)
    home = tmp_path_factory.mktemp("home")
    settings = replace(registry, home=home, database_url=f"sqlite:///{home}/results.db")
    write_topic(settings, "nest-logs", [*(one_camera(f"cam-{number}", START) for number in range(20)), ALARM, b"rubbish"], key=b"home")
    changes = [change(number, at=int(START.timestamp()) + number) for number in range(20)]
    write_topic(settings, "wikimedia", serialized(settings, changes), partitions=3)

    if HAS_DELTA:
        create_topics(settings.kafka, [Topic("clicks", 2)])
        write_topic(settings, "clicks", [b'{"n": %d}' % number for number in range(20)], partitions=2)
        succeed("ingest", "nest-logs", "--once", settings=settings)
        succeed("ingest", "clicks", "--append", "--once", settings=settings)
    run_once(settings, *(query for query in HERE if not query.startswith("ingest-")))
    before = {query: held(settings) for query, held in HERE.items()}
    checkpoints = {query.name: Checkpoint(query.checkpoint_name.folder(settings)) for query in all_queries(settings) if query.name in HERE}
    lost = {query: lose_last_batch(checkpoint) for query, checkpoint in checkpoints.items()}
    run_once(settings, *HERE)
    return Runs(
        before,
        after={query: held(settings) for query, held in HERE.items()},
        has_run_again={query: checkpoints[query].last_committed >= number for query, number in lost.items()},
    )


@pytest.mark.parametrize("query", [*SINKS, *(pytest.param(query, marks=pytest.mark.delta) for query in OF_DELTA)])
def test_a_batch_without_its_commit_is_run_again_and_changes_nothing(runs, query):
    assert runs.before[query], "the first run has written nothing, so that this test shows nothing"
    assert runs.has_run_again[query], "the batch was not run again, so that this test shows nothing"
    assert runs.after[query] == runs.before[query]
