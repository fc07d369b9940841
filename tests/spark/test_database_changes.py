"""Records of a result topic as changes of a table: pure, on static frames."""

from datetime import UTC, datetime

import orjson
import pytest

from infrastructure.settings import Settings
from pipeline.catalog import all_queries

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = {"start": "2026-01-01T12:00:00Z", "end": "2026-01-01T13:00:00Z"}


@pytest.fixture(scope="module")
def query():
    (found,) = (one for one in all_queries(Settings()) if one.name == "nest-camera-stats-database")
    return found


def record(offset, zip_code, count):
    """A record of nest-camera-stats. count: None for a tombstone."""
    key = {"zip_code": zip_code, "window": WINDOW}
    value = None if count is None else orjson.dumps({**key, "count": count})
    return orjson.dumps(key), value, "nest-camera-stats", 0, offset, NOON, NOON


def rows(spark, query, *records):
    columns = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, clock timestamp"
    changes = query.decode(spark.createDataFrame(list(records), columns))
    found = query.sink.newest(changes).toArrow().to_pylist()
    return {one["zip_code"]: (one["_is_deleted"], one["count"]) for one in found}, found


def unreadable(spark, query, *records):
    """The rows that are left, and how many records cannot be read."""
    counts, found = rows(spark, query, *records)
    return {zip_code: count for zip_code, count in counts.items() if zip_code}, sum(one["_unreadable"] for one in found)


def test_a_row_has_the_windows_edges_as_columns(spark, query):
    _, found = rows(spark, query, record(0, "10025", 3))
    edges = {"window_start": NOON, "window_end": NOON.replace(hour=13)}
    assert found == [{"zip_code": "10025", **edges, "_unreadable": 0, "_is_deleted": False, "count": 3}]


def test_the_last_change_of_a_key_counts(spark, query):
    records = [record(0, "a", 1), record(1, "b", 1), record(2, "a", 2), record(3, "b", None)]
    assert rows(spark, query, *records)[0] == {"a": (False, 2), "b": (True, None)}


def test_texts_that_postgresql_cannot_hold_stay_different(spark, query):
    texts = ["a\0b", "a\ufffdb", "x" * 255, "x" * 256, "x" * 256 + "y", "x" * 256 + "z"]
    found, _ = rows(spark, query, *(record(offset, text, offset) for offset, text in enumerate(texts)))
    assert sorted(count for _, count in found.values()) == [0, 1, 2, 3, 4, 5]
    assert {"a\ufffdb": (False, 1), "x" * 255: (False, 2)}.items() <= found.items(), "what fits is kept as it is"
    assert max(map(len, found)) <= 255
    assert not any("\0" in text for text in found)


GOOD_KEY = orjson.dumps({"zip_code": "a", "window": WINDOW})
FAR = {"start": "+55000-01-01T12:00:00Z", "end": "+55000-01-01T13:00:00Z"}


@pytest.mark.parametrize(
    "value", [b"rubbish", b"", b"[]", b"null", b"\xff", b'{"zip_code": "a", "count": "many"}', b'{"count": 1e30}', b'{"count": {}}']
)
def test_a_value_of_another_program_deletes_the_row_and_the_rest_is_written(spark, query, value):
    foreign = (GOOD_KEY, value, "nest-camera-stats", 0, 1, NOON, NOON)
    assert unreadable(spark, query, record(0, "a", 1), foreign, record(2, "b", 2)) == ({"a": (True, None), "b": (False, 2)}, 1)


@pytest.mark.parametrize(
    "key",
    [
        b"rubbish",
        None,
        b"",
        b"{}",
        b'{"zip_code": null}',
        orjson.dumps({"zip_code": "a", "window": FAR}),
        b'{"zip_code": "a", "window": 7}',
    ],
)
def test_a_key_of_another_program_is_left_out_and_the_rest_is_written(spark, query, key):
    value = orjson.dumps({"zip_code": "a", "window": WINDOW, "count": 5})
    foreign = [(key, content, "nest-camera-stats", 0, offset, NOON, NOON) for offset, content in ((1, value), (2, None))]
    assert unreadable(spark, query, record(0, "a", 1), *foreign) == ({"a": (False, 1)}, 2)
