"""Records in, tables out: the newest of each key, whatever the order and however often, against a plain dictionary."""

import json
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import deltalake
import pytest
from pyspark.sql import types as T  # noqa: N812
from streaming import RECORD_SCHEMA

from contract.settings import Settings
from pipeline.ingest.json_types import AmbiguousNames, TypeChanged
from pipeline.ingest.location import Location, TableSchema
from pipeline.ingest.records import newest, rows, seen_type, unusable, usable
from pipeline.ingest.upsert import learned, merge

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def location(tmp_path):
    return Location.of("events", Settings(home=tmp_path))


@pytest.fixture
def record(spark):
    """Makes records of key, value (bytes, or what becomes JSON), partition, offset, and seconds after noon, which are the offset if left out."""

    def make(*given):
        made = []
        for key, value, partition, offset, *seconds in given:
            text = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            key_bytes = key.encode() if isinstance(key, str) else key
            time = NOON + timedelta(seconds=(seconds or [offset])[0])
            made.append((key_bytes, text, "events", partition, offset, time, time))
        return spark.createDataFrame(made, RECORD_SCHEMA)

    return make


@pytest.fixture
def held(spark, location):
    """Reads the table as {key: (partition, offset, fields that are not null)}."""

    def read():
        found = [json.loads(text) for text in spark.read.format("delta").load(str(location.table)).toJSON().collect()]
        keys = [row["kafka_key"] for row in found]
        assert len(keys) == len(set(keys)), f"a key has two rows: {sorted(keys)}"
        return {
            row["kafka_key"]: (
                row["kafka_partition"],
                row["kafka_offset"],
                {name: value for name, value in row.items() if not name.startswith("kafka_")},
            )
            for row in found
        }

    return read


def put(records, location, *, take_new_fields=True):
    merge(records, location, take_new_fields=take_new_fields)


def test_the_newest_of_a_key_is_that_with_the_larger_offset_whatever_its_time(record):
    found = newest(usable(record(("a", {"n": 1}, 0, 7, 1), ("a", {"n": 2}, 0, 6, 9), ("b", None, 0, 1))))
    assert [(row.kafka_key, row.kafka_offset, row.document) for row in found.orderBy("kafka_key").collect()] == [
        ("a", 7, '{"n": 1}'),
        ("b", 1, None),
    ]


def test_across_partitions_the_later_one_is_newer(record):
    found = newest(usable(record(("a", {"n": 1}, 2, 900, 5), ("a", {"n": 2}, 0, 3, 6), ("b", {"n": 3}, 1, 1, 5), ("b", {"n": 4}, 0, 9, 5))))
    assert {(row.kafka_key, row.kafka_partition) for row in found.collect()} == {("a", 0), ("b", 1)}


REASONS = [
    (None, {"n": 1}, "no key"),
    (None, None, "no key"),
    (b"\xff\xfe", {"n": 1}, "the key is not UTF-8"),
    ("a", b"", "empty"),
    ("a", b"\xff{}", "not UTF-8"),
    ("a", b'{"n": 1', "not JSON"),
    ("a", b'{"n": 1, "n": 2}', "not JSON"),
    ("a", [1], "no JSON object"),
    ("a", "text", "no JSON object"),
    ("a", b"null", "no JSON object"),
    ("b", {}, None),
    ("c", b'\n {"n": 1}', None),
    ("", {"n": 1}, None),
    ("d", None, None),
]


def test_what_no_table_can_take_is_a_dead_letter_with_its_reason(record):
    records = record(*((key, value, 3, offset) for offset, (key, value, _) in enumerate(REASONS)))
    told = {}
    for letter in unusable(records, "ingest-events").collect():
        headers = {header.key: header.value.decode() for header in letter.headers}
        told[int(headers["offset"])] = headers["reason"]
        assert json.loads(letter.key) == {"offset": int(headers["offset"]), "partition": 3, "reader": "ingest-events", "topic": "events"}
    assert told == {offset: reason for offset, (*_, reason) in enumerate(REASONS) if reason}
    assert {row.kafka_offset for row in newest(usable(records)).collect()} == set(range(len(REASONS))) - set(told)


def test_rows_have_kafkas_columns_and_the_fields(record, location):
    found = newest(
        usable(record(("a", {"x.y": {"d e": [1, 2.5]}, "e": {}, "m": 1, "none": None}, 0, 4), ("b", {"m": "text", "e": {}}, 0, 5)))
    )
    schema = learned(found, location, take_new_fields=True)
    assert [one.name for one in schema.columns] == ["e", "m", "x.y"]
    assert schema.kept_as_text == {"e": "an object without fields", "m": "mixed types"}
    table = rows(found, schema.columns).orderBy("kafka_key")
    assert table.columns == ["kafka_key", "kafka_partition", "kafka_offset", "kafka_timestamp", "e", "m", "x.y"]
    one, other = table.collect()
    assert (one["m"], one["e"], one["x.y"]["d e"]) == ("1", "{}", [1.0, 2.5])
    assert (other["m"], other["x.y"]) == ("text", None)
    assert one["kafka_timestamp"].replace(tzinfo=UTC) == NOON + timedelta(seconds=4)


def test_names_that_sql_would_trip_over_are_types_too(record):
    odd = {"OBJECT": 1, "a: OBJECT<b": {"OBJECT<": 2}, "`": "x", "from": True, "1": 1.5}
    seen = seen_type(usable(record(("a", odd, 0, 0))))
    assert {one.name for one in seen} == set(odd)
    assert seen["a: OBJECT<b"].dataType == T.StructType([T.StructField("OBJECT<", T.LongType())])


def test_a_table_through_its_life_of_which_a_reader_sees_each_batch_whole(record, location, held):
    put(
        record(("a", {"n": 1}, 0, 0), ("b", {"n": 2}, 0, 1), ("c", {"n": 4, "new": {"deep": [{"x": 1}]}}, 0, 2), ("a", {"n": 3}, 0, 3)),
        location,
    )
    assert held() == {"a": (0, 3, {"n": 3}), "b": (0, 1, {"n": 2}), "c": (0, 2, {"n": 4, "new": {"deep": [{"x": 1}]}})}
    snapshot = deltalake.DeltaTable(str(location.table)).to_pyarrow_dataset()
    put(
        record(("b", None, 0, 4), ("c", {"new": {"deep": [{"y": "z"}], "er": True}}, 0, 5), ("d", {"n": 5}, 0, 6), ("e", {}, 0, 7)),
        location,
    )
    assert held() == {
        "a": (0, 3, {"n": 3}),
        "c": (0, 5, {"new": {"deep": [{"y": "z"}], "er": True}}),
        "d": (0, 6, {"n": 5}),
        "e": (0, 7, {}),
    }
    assert [one.name for one in TableSchema.read(location.schema).columns] == ["n", "new"]

    def rows_of(table):
        return sorted((row["kafka_key"], row["kafka_offset"]) for row in table.to_pylist())

    before, after = [("a", 3), ("b", 1), ("c", 2)], [("a", 3), ("c", 5), ("d", 6), ("e", 7)]
    assert rows_of(snapshot.to_table()) == before, "a reader that began before the batch goes on with what it saw"
    last = deltalake.DeltaTable(str(location.table)).version()
    seen = [rows_of(deltalake.DeltaTable(str(location.table), version=version).to_pyarrow_table()) for version in range(last + 1)]
    assert [found for found in seen if found not in ([], before, after)] == [], "no version of the table is half a batch"
    assert (seen[-1], before in seen) == (after, True)


class Sent(NamedTuple):
    """A record of a key: by which partition, seconds after noon, whether it is a deletion, and in which batch."""

    partition: int
    seconds: int
    is_deletion: bool
    batch: int


BATCHES = 3
OUT_OF_ORDER = 3
"""The partition whose batches do not come in order."""
BY_TWO_PARTITIONS = [
    # By time the last is older than the second, by offset newer than the first.
    [Sent(0, 10, False, 0), Sent(1, 7, False, 1), Sent(0, 5, False, 2)],
    # The table itself does not tell that partition 0 has come to 10.
    [Sent(0, 10, False, 0), Sent(0, 5, False, 1), Sent(1, 7, False, 2)],
]
DELETIONS = [
    [Sent(OUT_OF_ORDER, 0, False, 0), Sent(OUT_OF_ORDER, 0, True, 1)],
    # What comes after the deletion is older.
    [Sent(OUT_OF_ORDER, 0, False, 0), Sent(OUT_OF_ORDER, 0, False, 2), Sent(OUT_OF_ORDER, 0, True, 1)],
    # So it is here, and the table has never had the key.
    [Sent(OUT_OF_ORDER, 0, False, 2), Sent(OUT_OF_ORDER, 0, True, 1)],
    # The last is newer.
    [Sent(OUT_OF_ORDER, 0, False, 1), Sent(OUT_OF_ORDER, 0, True, 0), Sent(OUT_OF_ORDER, 0, False, 2)],
]


def histories(chance):
    """Of many keys, for merging is slow, and keys have nothing to do with each other: 100 by several partitions, 50 by one out of order."""
    for number in range(150):
        partitions = range(OUT_OF_ORDER) if number < 100 else [OUT_OF_ORDER]
        yield [
            Sent(chance.choice(partitions), chance.randrange(6), chance.random() < 0.4, chance.randrange(BATCHES))
            for _ in range(chance.randrange(2, 9))
        ]


def test_any_split_into_batches_gives_the_same_table_whatever_partitions_keys_come_by(record, location, held):
    offsets, batches, records_of = Counter(), [[] for _ in range(BATCHES)], defaultdict(list)
    everything = [
        (f"k{key}", sent) for key, history in enumerate([*BY_TWO_PARTITIONS, *DELETIONS, *histories(random.Random(1))]) for sent in history
    ]
    # A batch has the offsets of a partition that follow those of the batch before.
    for key, sent in sorted(everything, key=lambda one: -1 if one[1].partition == OUT_OF_ORDER else one[1].batch):
        offset = offsets[sent.partition]
        offsets[sent.partition] += 1
        records_of[key].append((key, None if sent.is_deletion else {"n": offset}, sent.partition, offset, sent.seconds))
        batches[sent.batch].append(records_of[key][-1])
    for batch in [*batches, batches[0]]:  # the first one again, as after a checkpoint that was lost
        put(record(*batch), location)
    found = held()
    newest_of_each = {key: newest_of(sent) for key, sent in records_of.items()}
    wrong = [
        f"{sent} should give {newest_of_each[key]}, and the table has {found.get(key)}"
        for key, sent in records_of.items()
        if found.get(key, "no row") != (newest_of_each[key] if newest_of_each[key][2] is not None else "no row")
    ]
    assert not wrong, "\n".join(wrong)


def newest_of(records):
    """Partition, offset and fields of the newest of a key's records: by the latest timestamp in its partition so far, then partition, then offset."""
    latest, ordered = {}, []
    for _, value, partition, offset, seconds in records:
        latest[partition] = max(seconds, latest.get(partition, seconds))
        ordered.append(((latest[partition], partition, offset), (partition, offset, value)))
    return max(ordered, key=lambda one: one[0])[1]


def test_a_batch_without_anything_usable_makes_an_empty_table(record, location, held):
    put(record(("a", b"rubbish", 0, 0), (None, {"n": 1}, 0, 1)), location)
    assert held() == {}


def test_columns_with_names_that_parquet_does_not_take(record, location, held):
    put(record(("a", {"plain": 1}, 0, 0)), location)
    put(record(("a", {"plain": 2, "a b": {"c;d": 1}, "x.y": "z", "`": 1}, 0, 1)), location)
    assert held() == {"a": (0, 1, {"plain": 2, "a b": {"c;d": 1}, "x.y": "z", "`": 1})}


def test_new_fields_can_be_left_out_and_are_named(record, location, held):
    put(record(("a", {"n": 1, "s": {"x": 1}}, 0, 0)), location)
    put(record(("a", {"n": 2, "later": 1, "s": {"x": 2, "y": 3}}, 0, 1)), location, take_new_fields=False)
    assert held() == {"a": (0, 1, {"n": 2, "s": {"x": 2}})}
    assert TableSchema.read(location.schema).ignored == ("later", "s.y")


def test_a_type_that_does_not_fit_writes_nothing_and_is_named(record, location):
    TableSchema("events", T.StructType.fromDDL("n bigint, s struct<x array<bigint>>")).write(location.schema)
    with pytest.raises(
        TypeChanged, match=r"^field n is bigint in the table and string in the topic; field s\.x\[\] is .*`streamgauge reset ingest-events`"
    ):
        put(record(("a", {"n": "one", "s": {"x": [True]}}, 0, 1), ("b", None, 0, 2)), location)
    assert not location.table.exists()
    assert not location.deletions.exists()


def test_fields_that_differ_in_case_only_are_named(record, location):
    with pytest.raises(AmbiguousNames, match="field id cannot be a column: ID is another field that differs in case only"):
        put(record(("a", {"ID": 1, "id": 2}, 0, 0)), location)
    assert not location.table.exists()
