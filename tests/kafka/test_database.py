"""Result topics as tables of a database, from a real broker into a real PostgreSQL."""

import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from avro import change, serialized
from databases import PASSWORD
from plain import one_camera, results, write_counts, write_topic
from running import eventually, one_line_error, running_queries, streamgauge, succeed, verify
from topic_reset import empty_topics
from verifying import run_once

from infrastructure.database import Database

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATS = "nest-camera-stats-database"
PER_HOUR = "select window_start, sum(count) from nest_camera_stats group by window_start order by window_start"
PAGE = Path(__file__).parents[2] / "docs" / "database.md"


def has_table(settings):
    return sa.inspect(Database.of(settings).engine).has_table("nest_camera_stats")


def ask(settings, sql):
    with Database.of(settings).transaction() as connection:
        return [tuple(row) for row in connection.execute(sa.text(sql))]


def people(settings):
    """How many people each hour has, in order."""
    return [int(row[1]) for row in ask(settings, PER_HOUR)]


def run(settings, *queries):
    succeed("run", *queries, "--once", settings=settings)


@pytest.fixture(scope="module")
def filled(settings, postgres, tmp_path_factory):
    """A table of two people at noon, and one at 14."""
    empty_topics(settings.kafka)
    settings = replace(settings, home=tmp_path_factory.mktemp("home"), database_url=postgres.new_database())
    write_counts(settings, {12: 2, 14: 1})
    run(settings, STATS)
    return settings


def test_the_statements_of_the_page_run(filled):
    statements = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert statements
    for sql in statements:
        assert ask(filled, sql), sql
    command = ["psql", "--no-psqlrc", "-At", "-c", PER_HOUR, filled.database_url.replace(f":{PASSWORD}", "")]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PGPASSWORD": PASSWORD, "PGTZ": "UTC"})
    assert done.stdout == "2026-01-01 12:00:00+00|2\n2026-01-01 14:00:00+00|1\n"


def test_the_table_follows_the_topic(filled):
    write_counts(filled, {12: 3, 13: 1, 14: None})
    run(filled, STATS)
    assert people(filled) == [3, 1]
    assert verify(STATS, settings=filled)[STATS]["verdict"] == "right"
    elsewhere = verify(STATS, settings=replace(filled, database_url=""))[STATS]
    assert (elsewhere["verdict"], "set STREAMGAUGE_DATABASE_URL as it was" in elsewhere["problem"]) == ("not checked", True)


def test_reset_writes_the_whole_table_again_wherever_new_queries_start(filled):
    before = people(filled)
    done = streamgauge("reset", STATS, "--yes", settings=filled)
    assert "table nest_camera_stats of " in done.stdout
    assert not has_table(filled)
    run(replace(filled, starting_offsets="latest"), STATS)
    assert people(filled) == before


def test_values_in_avro_are_decoded(fresh_registry, postgres):
    settings = replace(fresh_registry, database_url=postgres.new_database())
    changes = [change(number, at=int(NOON.timestamp()), bot=number > 1) for number in range(3)]
    write_topic(settings, "wikimedia", serialized(settings, changes))
    run_once(settings, "wikimedia-edit-stats", "wikimedia-edit-stats-database")
    rows = ask(settings, "select requested_by, counts from wikimedia_processed order by requested_by")
    assert rows == [("Bot", 1), ("Bot", 1), ("Human", 2), ("Human", 2)]


def test_a_database_that_goes_away_is_waited_for_and_the_others_go_on(fresh, postgres):
    settings = replace(fresh, database_url=postgres.new_database(), restart_limit=0)
    write_topic(settings, "nest-logs", [one_camera("cam-1", NOON)])
    with running_queries("nest-camera-stats", STATS, settings=settings) as said:
        eventually(lambda: has_table(settings) and people(settings) == [1], "the first row to be in the table")
        postgres.stop()
        write_topic(settings, "nest-logs", [one_camera("cam-1", NOON + timedelta(hours=1))])
        eventually(lambda: any(f"{STATS} waits for the database" in line for line in said), "the query to wait for the database")
        eventually(lambda: sum(results(settings).values()) == 2, "the other query to go on")
        postgres.start()
        eventually(lambda: people(settings) == [1, 1], "the other row to be in the table")


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
