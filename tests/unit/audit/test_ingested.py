"""Tables of ingested topics: which records they store, and whether a row is that of its record."""

import json
from dataclasses import replace
from datetime import datetime

import deltalake
import duckdb
import pyarrow as pa
import pytest
from auditing import Kafka, records
from messages import refused

from audit.checks.ingested import Expected, documents_of, ingested
from audit.reading.lake_files import delta_files, delta_names, delta_rows
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - as DuckDB has it


def problem(key, value, *, append=False, clock=NOON):
    table = records("orders", value, clock=clock)
    with_key = table.set_column(table.schema.get_field_index("key"), "key", pa.array([key], pa.binary()))
    (row,) = documents_of(with_key, append=append).to_pylist()
    return row["problem"] or row["document"]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (b"a", b'{"n": 1}', '{"n": 1}'),
        (b"a", None, None),
        (None, b"{}", "no key"),
        (b"\xff", b"{}", "the key is not UTF-8"),
        (b"a", b"", "empty"),
        (b"a", b"[1]", "no JSON object"),
        (b"a", b'{"n": 1, "n": 2}', "a name is there twice in an object"),
        (b"a", b'{"o": {"id": 1, "ID": 2}}', "an object has two names that differ in case only"),
        (b"a", '{"sin\u0131f": 1, "SINIF": 2}'.encode(), "an object has two names that differ in case only"),
        (b"a", '{"stra\u00dfe": 1, "strasse": 2}'.encode(), '{"stra\u00dfe": 1, "strasse": 2}'),
        (b"a", b'{"o": ' + b"[" * 100 + b"]" * 100 + b"}", "not JSON, or nested more than 100 levels deep"),
        (b"a", b"{'n': 1}", "not JSON"),
    ],
)
def test_a_record_is_stored_as_it_is_or_has_a_reason(key, value, told):
    assert problem(key, value) == told


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (None, b'{"n": 1}', '{"n": 1}'),
        (b"a", b'{"n": 1}', '{"n": 1}'),
        (b"\xff", b"{}", "the key is not UTF-8"),
        (b"a", None, "empty"),
        (None, b"[1]", "no JSON object"),
    ],
)
def test_where_each_record_is_a_row_it_needs_a_value_and_no_key(key, value, told):
    assert problem(key, value, append=True) == told


@pytest.mark.parametrize(("key", "value"), [(b"a", b'{"n": 1}'), (b"a", None), (None, b"{}")])
def test_a_record_whose_time_is_in_microseconds_is_not_stored(key, value):
    assert (
        problem(key, value, clock=None) == "the record's Kafka timestamp is not of the years 1970 to 2999; expected milliseconds since 1970"
    )


@pytest.mark.parametrize(
    ("document", "fields", "is_in"),
    [
        ('{"n": 1, "s": "x", "b": true}', {"n": 1, "s": "x", "b": True}, True),
        ('{"n": 1}', {"n": 2}, False),
        ('{"n": 1}', {"n": 1, "later": None}, True),
        ('{"n": 1.5}', {"n": 1.5}, True),
        ('{"o": {"y": null}}', {"o": {"x": None, "y": None}}, True),
        ('{"l": [1, 2]}', {"l": [1, 2]}, True),
        ('{"l": [1, 2]}', {"l": [1]}, False),
        ('{"o": {"a": 1.50}}', {"o": '{"a":1.5}'}, True),
        ('{"n": 1e400}', {"n": "1e400"}, True),
        ('{"n": 1e9999999999999999999}', {"n": "1e9999999999999999999"}, True),
        ('{"o": {"n": 1e9999999999999999999}}', {"o": '{"n":"1e9999999999999999999"}'}, True),
        ('{"o": {"n": 1}}', {"o": '{"n":1e9999999999999999999}'}, False),
        ('{"o": {"n": 1}}', {"o": "[" * 100_000}, False),
        ('{"n": true}', {"n": 1}, False),
        ('{"s": "1"}', {"s": "1"}, True),
        ('{"t": {"n": 123456789.12345678901}}', {"t": '{"n":"123456789.12345678901"}'}, True),
    ],
)
def test_a_row_is_that_of_its_record_in_the_types_that_the_table_has(document, fields, is_in):
    row = {"kafka_key": "a", "kafka_partition": 0, "kafka_offset": 3, "kafka_timestamp": NOON, **fields}
    assert Expected("a", 0, 3, NOON, document).is_in(row) == is_in
    assert not Expected("a", 0, 4, NOON, document).is_in(row)
    assert not Expected(None, 0, 3, NOON, document).is_in(row)
    assert not Expected("a", 0, 3, NOON, document).is_in({**row, "kafka_timestamp": None})


def test_the_log_of_a_delta_table_may_hold_line_breaks_of_its_rows(tmp_path):
    deltalake.write_deltalake(str(tmp_path / "orders"), pa.table({"kafka_key": ["a"], "s": ["\u2028\u2029\x85"]}))
    assert len(delta_files(tmp_path / "orders")) == 1


def test_the_names_in_the_files_of_a_delta_table_are_those_of_the_table_unless_its_log_says_otherwise(tmp_path):
    deltalake.write_deltalake(str(tmp_path / "orders"), pa.table({"kafka_key": ["a"], "o": [{"n": 1}]}))
    assert len(delta_files(tmp_path / "orders")) == 1
    assert delta_names(tmp_path / "orders") == {"kafka_key": ("kafka_key", {}), "o": ("o", {"n": ("n", {})})}


def test_a_time_that_python_does_not_have_is_one_line(tmp_path):
    folder = tmp_path / "orders"
    deltalake.write_deltalake(str(folder), pa.table({"kafka_timestamp": pa.array([10**18], pa.timestamp("us", "UTC"))}))
    with pytest.raises(StreamgaugeError, match="has a time that is not of the years 1 to 9999"):
        delta_rows(folder, delta_files(folder), duckdb.connect())


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"topic": "a"}', '{"topic": "a", "columns": {"fields": [1]}}'])
def test_a_damaged_schema_is_one_line(tmp_path, text):
    settings = replace(Settings(), home=tmp_path)
    settings.lake.mkdir()
    (settings.lake / "orders.schema.json").write_text(text)
    with refused("orders.schema.json is not the schema of a table"):
        list(ingested(settings))


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("of_kafka", [True, False])
def test_rows_that_are_of_no_record_are_extra(tmp_path, monkeypatch, append, of_kafka):
    """As after an INSERT that names the columns of the documents alone, or with a table that lacks those of Kafka."""
    monkeypatch.setattr("audit.checks.ingested.is_compacted", lambda *_: False)
    broker = Kafka(tmp_path, ("orders",))
    broker.has_run("ingest-orders", 0, mode="append", committed=1, source="orders")
    broker.settings.lake.mkdir(exist_ok=True)
    schema = {"topic": "orders", "append": append, "columns": {"fields": [{"name": "n"}]}}
    (broker.settings.lake / "orders.schema.json").write_text(json.dumps(schema))
    origins = [["a", 0, 0, NOON], ["b", None, None, None], [None] * 4] if of_kafka else []
    columns = dict(zip(("kafka_key", "kafka_partition", "kafka_offset", "kafka_timestamp"), zip(*origins, strict=True), strict=False))
    deltalake.write_deltalake(str(broker.settings.lake / "orders"), pa.table({**columns, "n": [1, 2, 3]}))
    found = broker.verdict("ingest-orders")
    assert found.verdict == "wrong"
    assert found.rows.extra == found.rows.wrong > 0
