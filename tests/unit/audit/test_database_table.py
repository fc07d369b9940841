"""Tables of the database, each against the last rows of the result topic that it is made of."""

import json
from datetime import datetime
from decimal import Decimal

import pytest
import sqlalchemy as sa
from auditing import result

from audit.checks.database_table import DatabaseTable, TableState, compared, flat, read
from infrastructure.database import Database
from infrastructure.settings import Settings

MADE = DatabaseTable(result("nest-camera-stats"))
WINDOW = {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}


def key(zip_code, **more):
    return json.dumps({"window": WINDOW, "zip_code": zip_code, **more}).encode()


def row(zip_code, count):
    return {"zip_code": zip_code, "window": WINDOW, "count": count}


@pytest.fixture
def database(tmp_path):
    return Database.of(Settings(home=tmp_path))


def write(database, *rows, batch=3):
    columns = [
        sa.Column("zip_code", sa.String(255), primary_key=True),
        *(sa.Column(f"window_{edge}", sa.DateTime(timezone=True), primary_key=True) for edge in WINDOW),
        sa.Column("count", sa.BigInteger),
    ]
    with database.transaction() as connection:
        table = sa.Table(MADE.name, sa.MetaData(), *columns)
        table.create(connection)
        kinds = {"table_name": sa.Text, "query_id": sa.Text, "batch": sa.BigInteger}
        batches = sa.Table("streamgauge_batches", sa.MetaData(), *(sa.Column(name, kind) for name, kind in kinds.items()))
        batches.create(connection)
        connection.execute(batches.insert().values(table_name=MADE.name, query_id="q", batch=batch))
        for zip_code, count in rows:
            edges = {f"window_{edge}": datetime.fromisoformat(time) for edge, time in WINDOW.items()}
            connection.execute(table.insert().values(zip_code=zip_code, count=count, **edges))


def test_a_table_that_is_not_there_holds_no_batch_and_a_database_without_any_is_another_one(database):
    assert read(MADE.name, database) == TableState(None, -1, [])
    write(database)
    assert read("other", database) == TableState("", -1, [])


def test_an_empty_table_holds_its_batch(database):
    write(database)
    assert read(MADE.name, database) == TableState("q", 3, [])


def test_rows_are_compared_by_key_and_with_windows_as_two_columns(database):
    write(database, ("10025", 1), ("94301", 2), ("extra", 1))
    counts = {"10025": 1, "94301": 3, "missing": 1}
    expected = MADE.by_key(flat(key(zip_code), row(zip_code, count), MADE) for zip_code, count in counts.items())
    found = MADE.by_key(read(MADE.name, database).rows)
    kinds = compared(expected, found, set())
    assert {of[0]: kind for of, kind in kinds.items()} == {
        "10025": "equal",
        "94301": "different",
        "extra": "extra",
        "missing": "missing",
    }
    renewed = {of for of in kinds if of[0] == "94301"}
    assert compared(expected, found, renewed)[renewed.pop()] == "not_checkable"


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (b"rubbish", {}),
        (b"[" * 10_000, {}),
        (key("1", other=1), {}),
        (b'"text"', {}),
        (key("1"), None),
        (key(["1"]), {}),
        (key({"1": 1}), {}),
        (key(None), {}),
        (b'{"window":null,"zip_code":"1"}', {}),
        (b'{"window":{"start":"2026-01-01T10:00:00Z"},"zip_code":"1"}', {}),
        (b'{"window":{"start":[],"end":1},"zip_code":"1"}', {}),
    ],
)
def test_what_somebody_else_wrote_is_no_row(of, value):
    assert flat(of, value, MADE) is None


def test_a_row_of_an_earlier_version_lacks_columns_which_are_null_in_the_table():
    made = DatabaseTable(result("nest-camera-status"))
    old = {"device_id": "a", "zip_code": "1", "state": "online"}
    expected = made.by_key([flat(b'{"device_id":"a"}', old, made)])
    for first_seen, kind in ((None, "equal"), ("2026-01-01T10:00:00Z", "different")):
        found = made.by_key([{**old, "first_seen": first_seen}])
        assert compared(expected, found, set()) == {("a",): kind}


def test_a_text_of_a_key_that_no_database_holds_ends_in_its_hash():
    long, nul = (flat(key(text), row(text, 1), MADE)["zip_code"] for text in ("x" * 256, "a\0b"))
    assert (len(long), long[:190]) == (255, "x" * 190)
    assert nul.startswith("a\ufffdb\N{HORIZONTAL ELLIPSIS}")
    assert flat(key("x" * 255), row("x" * 255, 1), MADE)["zip_code"] == "x" * 255


def test_a_decimal_is_a_double_in_sqlite():
    expected, found = (
        MADE.by_key([{"zip_code": "1", "window_start": "", "window_end": "", "count": one}]) for one in (Decimal("0.10"), 0.1)
    )
    kinds = compared(expected, found, set())
    assert set(kinds.values()) == {"equal"}
