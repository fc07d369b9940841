"""Records of a result topic as changes of a table: pure, on static frames."""

from datetime import UTC, datetime

import orjson
import pytest

from contract.settings import Settings
from pipeline.catalog import known

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = {"start": "2026-01-01T12:00:00Z", "end": "2026-01-01T13:00:00Z"}


@pytest.fixture(scope="module")
def query():
    (found,) = (one for one in known(Settings()) if one.name == "nest-camera-stats-database")
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


def test_a_row_has_the_windows_edges_as_columns(spark, query):
    _, found = rows(spark, query, record(0, "10025", 3))
    edges = {"window_start": NOON, "window_end": NOON.replace(hour=13)}
    assert found == [{"zip_code": "10025", **edges, "_is_deleted": False, "count": 3}]


def test_the_last_change_of_a_key_counts(spark, query):
    records = [record(0, "a", 1), record(1, "b", 1), record(2, "a", 2), record(3, "b", None)]
    assert rows(spark, query, *records)[0] == {"a": (False, 2), "b": (True, None)}


def test_a_text_that_postgresql_could_not_hold_is_made_to_fit(spark, query):
    found, _ = rows(spark, query, record(0, "a\0b", 1), record(1, "x" * 1000, 2))
    assert found == {"a\ufffdb": (False, 1), "x" * 255: (False, 2)}
