"""A compacted topic, folded: the last value per key counts, null deletes, nothing is dropped silently."""

from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.kafka.result_table import ResultTable
from infrastructure.rows import decode_json


def fold(*records, decode=decode_json):
    table = ResultTable(decode)
    for record in records:
        table.apply(*record)
    return table


def test_the_last_value_of_a_key_counts():
    assert fold((b"a", b'{"count": 1}'), (b"b", b'{"count": 5}'), (b"a", b'{"count": 2}')).rows() == [{"count": 5}, {"count": 2}]


def test_a_null_value_deletes():
    assert fold((b"a", b'{"count": 1}'), (b"b", b'{"count": 5}'), (b"a", None)).rows() == [{"count": 5}]


def test_a_null_value_for_a_key_that_was_never_there_changes_nothing():
    assert fold((b"a", None)).rows() == []


def test_reading_the_topic_twice_gives_the_same_rows():
    records = [(b"a", b'{"count": 1}'), (b"a", b'{"count": 2}'), (b"b", None)]
    assert fold(*records, *records).rows() == fold(*records).rows() == [{"count": 2}]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"no json", "JSONDecodeError"),
        (b"", "JSONDecodeError"),
        (b"\xff", "JSONDecodeError"),
        (b"[1]", "expected a JSON object, found list"),
    ],
)
def test_a_value_that_is_no_json_object_is_unreadable_and_the_rest_is_read_on(value, reason):
    table = fold((b"a", value), (b"b", b'{"count": 5}'))

    assert table.rows() == [{"count": 5}]
    assert list(table.unreadable) == [b"a"]
    assert reason in table.unreadable[b"a"]


def test_an_unreadable_value_takes_the_older_row_away_because_a_compaction_would():
    uncompacted = fold((b"a", b'{"count": 1}'), (b"a", b"no json"))
    compacted = fold((b"a", b"no json"))

    assert uncompacted.rows() == compacted.rows() == []
    assert uncompacted.unreadable == compacted.unreadable


@pytest.mark.parametrize("cure", [b'{"count": 1}', None])
def test_a_readable_value_or_a_null_mends_an_unreadable_key(cure):
    assert fold((b"a", b"no json"), (b"a", cure)).unreadable == {}


def test_a_record_without_a_key_belongs_to_no_row():
    table = fold((None, b'{"count": 1}'))

    assert table.rows() == []
    assert table.unreadable == {None: "a record without a key"}


def test_values_that_are_not_json_bring_their_own_decoder():
    assert fold((b"a", b"7"), decode=lambda value: {"count": int(value)}).rows() == [{"count": 7}]


def test_whatever_a_decoder_raises_is_the_reason():
    def decode(_):
        msg = "ends in the middle of a field"
        raise EOFError(msg)

    assert fold((b"a", b"\x00"), decode=decode).unreadable == {b"a": "EOFError: ends in the middle of a field"}


def test_the_newest_kafka_timestamp_is_the_largest_of_all_records_in_utc():
    assert fold((b"a", b"{}")).newest_record_at is None
    table = fold((b"a", b"{}", 1_000), (b"b", None, 3_500), (b"a", b"{}", 2_000))
    assert table.newest_record_at == datetime(1970, 1, 1, 0, 0, 3, 500_000, tzinfo=UTC)


READABLE = st.dictionaries(st.text(max_size=2), st.integers(0, 3) | st.text(max_size=2), max_size=2).map(orjson.dumps)
UNREADABLE = st.sampled_from([b"", b"{", b"[1]", b"\xff", b"null"])
RECORDS = st.lists(
    st.tuples(st.none() | st.sampled_from([b"a", b"b", b"c"]), st.none() | READABLE | UNREADABLE, st.none() | st.integers(0, 9))
)


def last_values(records):
    """The last value of each key, in order of their last change: what a compacted topic promises, in plain Python."""
    last = {}
    for key, value, _ in records:
        last.pop(key, None)
        last[key] = value
    return last


def is_object(value):
    return value is not None and value.startswith(b"{") and value != b"{"


@given(RECORDS)
def test_the_table_is_the_last_value_of_each_key(records):
    table, last = fold(*records), last_values(records)
    keyed = {key: value for key, value in last.items() if key is not None}
    assert table.keys() == [key for key, value in keyed.items() if is_object(value)]
    assert table.rows() == [orjson.loads(value) for value in keyed.values() if is_object(value)]
    unreadable = {key for key, value in keyed.items() if value is not None and not is_object(value)}
    assert set(table.unreadable) == unreadable | ({None} if None in last else set())
    times = [time for _, _, time in records if time is not None]
    assert table.newest_record_at == (datetime.fromtimestamp(max(times) / 1000, UTC) if times else None)


@given(RECORDS, st.data())
def test_neither_a_compaction_nor_a_part_that_comes_again_changes_the_table(records, data):
    final = {max(place for place, record in enumerate(records) if record[0] == key) for key, _, _ in records}
    compacted = [record for place, record in enumerate(records) if place in final or data.draw(st.booleans(), label="kept")]
    start = data.draw(st.integers(0, len(records)), label="comes again from")
    table = fold(*records)
    for other in (fold(*compacted), fold(*records, *records[start:])):
        assert sorted(zip(other.keys(), other.rows(), strict=True)) == sorted(zip(table.keys(), table.rows(), strict=True))
        assert other.unreadable == table.unreadable
