"""Tables of a relational database: upserts by key, each batch exactly once, on a real PostgreSQL and on SQLite."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce

import pyarrow as pa
import pytest
import sqlalchemy as sa
from databases import PASSWORD
from messages import absent, refused
from pyspark.sql import types as T  # noqa: N812

from infrastructure.database import Database, DatabaseRefuses, DatabaseUnavailable
from infrastructure.errors import StreamgaugeError
from infrastructure.process.ports import free_ports
from infrastructure.settings import Settings
from pipeline.database.changes import IS_DELETED
from pipeline.database.keyed_table import KeyedTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TYPES = {
    "place": "string",
    "window_start": "timestamp",
    "count": "long",
    "paid": T.DecimalType(12, 2),
    "share": "double",
    "is_open": "boolean",
}
COLUMNS = reduce(lambda columns, one: columns.add(*one), TYPES.items(), T.StructType())
KEY = ("place", "window_start")
FIRST, SECOND = "checkpoint-1", "checkpoint-2"


def row(place, count, **more):
    return {"place": place, "window_start": NOON, "count": count, "paid": Decimal("0.10"), "share": 0.5, "is_open": None, **more}


def changes(*upserts, deleted=()):
    rows = [{**one, IS_DELETED: False} for one in upserts] + [{**row(place, None), IS_DELETED: True} for place in deleted]
    stamp = pa.timestamp("us", tz="UTC")
    fields = {"place": pa.string(), "window_start": stamp, "count": pa.int64(), "paid": pa.decimal128(12, 2)}
    return pa.Table.from_pylist(rows, pa.schema({**fields, "share": pa.float64(), "is_open": pa.bool_(), IS_DELETED: pa.bool_()}))


def table_at(url):
    return KeyedTable(Database.of(Settings(database_url=url)), "stats", COLUMNS, KEY, "stats-database")


@pytest.fixture
def table(database_url):
    found = table_at(database_url)
    found.prepare()
    return found


def execute(table, sql):
    with table.database.transaction() as connection:
        connection.execute(sa.text(sql))


def counts(table):
    return {one["place"]: one["count"] for one in table.read().rows}


def test_a_batch_inserts_updates_and_deletes_by_key(table):
    table.write(changes(row("a", 1), row("b", 1)), FIRST, 0)
    table.write(changes(row("a", 2), row("c", 1), deleted=["b", "never-there"]), FIRST, 1)
    assert counts(table) == {"a": 2, "c": 1}


def test_values_are_kept(table):
    one = row("Zürich", 2**62, paid=Decimal("1234567890.12"), share=1 / 3, is_open=True)
    table.write(changes(one), FIRST, 0)
    assert table.read().rows == [one]


SURROUNDINGS = {
    "datestyle": "'German, DMY'",
    "timezone": "'America/New_York'",
    "search_path": "elsewhere, public",
    "client_encoding": "latin1",
    "extra_float_digits": "-10",
    "standard_conforming_strings": "off",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "serializable",
}


@pytest.mark.parametrize("setting", [*SURROUNDINGS, "all"])
def test_the_settings_of_a_database_do_not_matter(postgres, setting):
    there = SURROUNDINGS if setting == "all" else {setting: SURROUNDINGS[setting]}
    table = table_at(postgres.new_database(**there))
    # Both are half past one in New York.
    places = [row(rf"Žižkov \ {hour} 'x'", 1, share=1 / 3, window_start=datetime(2026, 11, 1, hour, 30, tzinfo=UTC)) for hour in (5, 6)]
    for batch in range(2):
        table.prepare()
        table.write(changes(*places), FIRST, batch)
    assert sorted(table.read().rows, key=lambda one: one["window_start"]) == places
    assert {one["window_start"] for one in table.read().rows} == {one["window_start"] for one in places}
    table.drop()
    assert not table.exists()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_of_an_encoding_without_every_character_is_refused(postgres, encoding):
    table = table_at(postgres.new_database(encoding))
    with refused(encoding, "UTF8", "create database", by=DatabaseRefuses):
        table.prepare()


def test_a_batch_that_runs_again_is_not_written_again(table):
    table.write(changes(row("a", 1)), FIRST, 0)
    execute(table, "update stats set count = 99")
    table.write(changes(row("a", 1)), FIRST, 0)
    assert counts(table) == {"a": 99}


def test_of_a_batch_that_fails_nothing_is_written(table):
    table.write(changes(row("a", 1)), FIRST, 0)
    with pytest.raises(DatabaseRefuses):
        table.write(changes(row("a", 2), row(None, 1)), FIRST, 1)
    assert counts(table) == {"a": 1}
    table.write(changes(row("a", 2)), FIRST, 1)
    assert counts(table) == {"a": 2}


def test_the_first_batch_of_a_new_checkpoint_replaces_the_rows(table):
    table.write(changes(row("a", 1), row("b", 1)), FIRST, 0)
    table.write(changes(row("b", 5)), SECOND, 0)
    assert counts(table) == {"b": 5}


def test_a_query_with_another_column_begins_with_a_table_that_has_it(table):
    table.write(changes(row("a", 1)), FIRST, 0)
    before = replace(table, columns=T.StructType([one for one in table.columns if one.name != "share"]))
    before.drop()
    before.prepare()
    table.prepare()
    table.write(changes(row("b", 5, share=0.5)), SECOND, 0)
    assert [(one["place"], one["share"]) for one in table.read().rows] == [("b", 0.5)]


@pytest.mark.parametrize(("query_id", "batch"), [(FIRST, 2), (SECOND, 1)])
def test_a_batch_that_does_not_follow_the_last_one_is_refused(table, query_id, batch):
    table.write(changes(row("a", 1)), FIRST, 0)
    with refused("table stats", f"batch {batch - 1}", "streamgauge reset stats-database", by=DatabaseRefuses):
        table.write(changes(row("a", 2)), query_id, batch)
    assert counts(table) == {"a": 1}


def test_a_table_that_was_dropped_is_not_continued(table):
    table.write(changes(row("a", 1)), FIRST, 0)
    execute(table, "drop table stats")
    table.prepare()
    with pytest.raises(DatabaseRefuses, match="restored, deleted or created again"):
        table.write(changes(row("b", 1)), FIRST, 1)


def test_a_table_of_somebody_else_is_left_alone(database_url):
    table = table_at(database_url)
    execute(table, "create table stats (place text)")
    with refused("table stats", "did not create", by=DatabaseRefuses):
        table.prepare()
    assert not table.exists()


def test_a_dropped_table_is_created_again(table):
    assert table.exists()
    table.drop()
    assert not table.exists()
    assert table.read().batch == -1
    table.prepare()
    table.write(changes(row("a", 1)), FIRST, 0)
    assert counts(table) == {"a": 1}


def test_a_server_that_is_read_only_as_after_a_failover_is_waited_for(postgres):
    table = table_at(postgres.new_database())
    table.prepare()
    with refused("does not answer (cannot execute DELETE in a read-only transaction)", by=DatabaseUnavailable):
        execute(table, "set transaction read only; delete from stats")


@pytest.mark.parametrize(
    ("user", "password", "database"), [("app", "wrong", "postgres"), ("nobody", PASSWORD, "postgres"), ("app", PASSWORD, "missing")]
)
def test_a_server_that_refuses_is_one_line_without_the_password(postgres, user, password, database):
    url = postgres.url(database, user, password)
    with refused(f"postgresql://127.0.0.1:{postgres.port}/{database}", "STREAMGAUGE_DATABASE_URL", by=DatabaseRefuses) as raised:
        table_at(url).prepare()
    assert absent(str(raised.value), password) == [password]


def test_a_user_without_rights_is_refused(postgres):
    execute(table_at(postgres.url("postgres")), f"create role reader login password '{PASSWORD}'")
    with refused("permission denied", "create tables", by=DatabaseRefuses):
        table_at(postgres.url("postgres", "reader")).prepare()


def test_the_address_of_another_database_is_refused():
    with refused("STREAMGAUGE_DATABASE_URL", "postgresql://", "sqlite:///"):
        Settings.from_environment({"STREAMGAUGE_DATABASE_URL": "mysql://app@host/app"})


def test_a_server_that_does_not_answer_is_away():
    (port,) = free_ports(1)
    with refused(f"127.0.0.1:{port}", "STREAMGAUGE_DATABASE_URL", by=DatabaseUnavailable):
        table_at(f"postgresql://app:{PASSWORD}@127.0.0.1:{port}/app").prepare()


@pytest.mark.parametrize("path", ["missing/results.db", "file/results.db", "n" * 300, "circle", ""])
def test_a_file_that_cannot_be_opened_is_refused(tmp_path, path):
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with refused(f"{tmp_path}/{path}", "unable to open", "STREAMGAUGE_DATABASE_URL", by=DatabaseRefuses):
        table_at(f"sqlite:///{tmp_path}/{path}").prepare()


def test_a_file_that_is_locked_is_away(tmp_path):
    table = table_at(f"sqlite:///{tmp_path}/results.db?timeout=0")
    table.prepare()
    with table.database.transaction() as other:
        other.execute(sa.text("update streamgauge_batches set batch = 0"))
        with refused("locked", by=DatabaseUnavailable):
            table.write(changes(row("a", 1)), FIRST, 0)


@pytest.mark.parametrize("limit", ["lock_timeout", "statement_timeout"])
def test_a_transaction_that_the_database_ends_is_neither_refused_nor_waited_for_without_end(postgres, limit):
    url = postgres.new_database()
    holder, waiting = table_at(url), table_at(f"{url}?options=-c%20{limit}%3D50")
    holder.prepare()
    with holder.database.transaction() as connection:
        connection.execute(sa.text("lock table stats"))
        with pytest.raises(StreamgaugeError, match=rf"ended a transaction \(canceling statement due to {limit.replace('_', ' ')}") as found:
            waiting.write(changes(row("a", 1)), FIRST, 0)
    assert type(found.value) is StreamgaugeError
