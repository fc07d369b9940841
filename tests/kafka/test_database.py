"""Result topics as tables of a database, from a real broker into a real PostgreSQL and into SQLite."""

import json
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from avro import V1, change
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from databases import PASSWORD
from plain import one_camera, write_topic
from running import eventually, one_line_error, running_queries, streamgauge

from contract.kafka.result_table import read_keys
from contract.kafka.tombstones import delete_rows
from contract.storage.checkpoint_names import CheckpointName
from pipeline.database.connection import Database

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATS = "nest-camera-stats-database"
PER_HOUR = "select window_start, sum(count) from nest_camera_stats group by window_start order by window_start"
PAGE = Path(__file__).parents[2] / "docs" / "database.md"


@pytest.fixture
def settings_of(fresh, database_url):
    return replace(fresh, database_url=database_url)


def ask(settings, sql):
    with Database.of(settings).transaction() as connection:
        return [tuple(row) for row in connection.execute(sa.text(sql))]


def people(settings):
    """How many people each hour has, in order."""
    return [int(row[1]) for row in ask(settings, PER_HOUR)]


def run(settings, *queries):
    done = streamgauge("run", *queries, "--once", settings=settings)
    assert done.returncode == 0, done.stderr


def verdict(settings, query=STATS):
    (outcome,) = json.loads(streamgauge("verify", query, "--format", "json", settings=settings).stdout)
    return outcome["verdict"], outcome["rows"]


def sightings(settings, hour, count, first=0):
    write_topic(settings, "nest-logs", [one_camera(f"cam-{hour}-{number}", NOON.replace(hour=hour)) for number in range(first, count)])


def test_the_table_follows_the_topic(settings_of):
    sightings(settings_of, 12, 2)
    run(settings_of, "nest-camera-stats", STATS)
    assert people(settings_of) == [2]
    sightings(settings_of, 12, 3)
    sightings(settings_of, 13, 1)
    run(settings_of, "nest-camera-stats", STATS)
    assert people(settings_of) == [3, 1]
    keys = read_keys(settings_of.kafka, "nest-camera-stats")
    delete_rows(settings_of.kafka, "nest-camera-stats", [key for key in keys if b'"start":"2026-01-01T12:00:00Z"' in key])
    run(settings_of, STATS)
    assert people(settings_of) == [1]
    assert verdict(settings_of)[0] == "right"


def test_a_batch_without_its_commit_is_not_written_twice(settings_of):
    sightings(settings_of, 12, 2)
    run(settings_of, "nest-camera-stats", STATS)
    commits = CheckpointName(STATS, 1, "append").folder(settings_of) / "commits"
    (commits / "0").unlink()
    with Database.of(settings_of).transaction() as connection:
        connection.execute(sa.text("update nest_camera_stats set count = 99"))
    run(settings_of, STATS)
    assert (commits / "0").exists(), "the batch was not run again, so that this test shows nothing"
    assert {count for (count,) in ask(settings_of, "select count from nest_camera_stats")} == {99}
    found, rows = verdict(settings_of)
    assert (found, rows["different"]) == ("wrong", len(ask(settings_of, "select * from nest_camera_stats")))


def test_reset_writes_the_whole_table_again_wherever_new_queries_start(settings_of):
    sightings(settings_of, 12, 2)
    run(settings_of, "nest-camera-stats", STATS)
    done = streamgauge("reset", STATS, "--yes", settings=settings_of)
    assert "table nest_camera_stats of " in done.stdout
    assert not sa.inspect(Database.of(settings_of).engine).has_table("nest_camera_stats")
    run(replace(settings_of, starting_offsets="latest"), STATS)
    assert people(settings_of) == [2]


def test_values_in_avro_are_decoded(fresh_registry, database_url):
    settings = replace(fresh_registry, database_url=database_url)
    serialize = AvroSerializer(SchemaRegistryClient({"url": settings.registry_url}), V1)
    changes = [change(number, at=int(NOON.timestamp()), bot=number > 1) for number in range(3)]
    write_topic(settings, "wikimedia", [serialize(one, SerializationContext("wikimedia", MessageField.VALUE)) for one in changes])
    run(settings, "wikimedia-edit-stats", "wikimedia-edit-stats-database")
    rows = ask(settings, "select requested_by, counts from wikimedia_processed order by requested_by")
    assert rows == [("Bot", 1), ("Bot", 1), ("Human", 2), ("Human", 2)]
    assert verdict(settings, "wikimedia-edit-stats-database")[0] == "right"


def test_a_database_that_goes_away_is_waited_for_and_the_others_go_on(fresh, postgres):
    settings = replace(fresh, database_url=postgres.new_database(), restart_limit=0)
    run(settings, STATS)  # creates the table
    sightings(settings, 12, 2)
    with running_queries("nest-camera-stats", STATS, settings=settings) as said:
        eventually(lambda: people(settings) == [2], "the first two to be in the table")
        postgres.stop()
        sightings(settings, 13, 1)
        eventually(lambda: any(f"{STATS} waits for the database" in line for line in said), "the query to wait for the database")
        assert not any("nest-camera-stats waits" in line for line in said)
        postgres.start()
        eventually(lambda: people(settings) == [2, 1], "the other one to be in the table")
    assert verdict(settings)[0] == "right"


def test_a_database_that_refuses_is_one_line_and_the_password_is_nowhere(fresh, postgres):
    settings = replace(fresh, database_url=postgres.url("missing"))
    done = streamgauge("run", STATS, "--once", settings=settings)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: query {STATS} given up: the database at postgresql://127.0.0.1:{postgres.port}/missing refuses")
    assert "Traceback" not in done.stderr
    assert "does not exist" in one_line_error(streamgauge("reset", STATS, "--yes", settings=settings))
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []
    assert PASSWORD not in done.stderr + done.stdout


def test_the_statements_of_the_page_run(settings_of):
    sightings(settings_of, 12, 2)
    run(settings_of, "nest-camera-stats", STATS)
    statements = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert statements
    for sql in statements:
        assert ask(settings_of, sql), sql
    if settings_of.database_url.startswith("postgresql"):
        command = ["psql", "--no-psqlrc", "-At", "-c", PER_HOUR, settings_of.database_url.replace(f":{PASSWORD}", "")]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PGPASSWORD": PASSWORD, "PGTZ": "UTC"})
        assert done.stdout == "2026-01-01 12:00:00+00|2\n"
