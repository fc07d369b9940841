"""Records in, tables out: the newest of each key, whatever the order and however often, against a plain dictionary."""

import itertools
import json
import random
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import deltalake
import pyarrow.parquet
import pytest
from messages import refused
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from running import eventually
from streaming import RECORD_SCHEMA

from audit.checks.ingested import _is_same
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.settings import Settings
from pipeline.ingest import upsert
from pipeline.ingest.json_types import MAX_NAMES, MAX_TYPED_LEVELS, AmbiguousNames, TooManyFields, TypeChanged
from pipeline.ingest.location import Location, TableSchema
from pipeline.ingest.records import newest, observed_type, parsed, table_rows, unusable, usable
from pipeline.ingest.upsert import learned, merge
from pipeline.lake.maintenance import maintain_delta
from pipeline.lake.tables import LakeTable
from pipeline.sources.kafka import NO_CLOCK
from pipeline.spark.errors import SparkFailure

if HAS_DELTA:
    from delta.tables import DeltaTable

pytestmark = pytest.mark.delta

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def location(tmp_path):
    return Location.of("events", Settings(home=tmp_path / "it`s a home"))


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
    ("a", b'{"n": 1, "n": 2}', "a name is there twice in an object"),
    ("a", b'{"n": 1, "o": [{"n": 1, "N": 2}]}', "an object has two names that differ in case only"),
    ("a", b'{"n": 1}{"n": 2}', "more than one JSON value, or other text after the first"),
    ("a", b'{"n": NaN}', "not JSON"),
    ("a", b'{"n":' + b"[" * 100 + b"]" * 100 + b"}", "not JSON, or nested more than 100 levels deep"),
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


@pytest.mark.parametrize("append", [False, True])
def test_a_record_whose_time_is_in_microseconds_is_a_dead_letter(record, append):
    records = record(("a", {"n": 1}, 0, 0), ("a", None, 0, 1), (None, {"n": 1}, 0, 2)).withColumn("clock", F.lit(None).cast("timestamp"))
    letters = unusable(records, "ingest-events", append=append).collect()
    assert [{header.key: header.value.decode() for header in letter.headers}["reason"] for letter in letters] == [NO_CLOCK] * 3
    assert usable(records, append=append).isEmpty()


def test_where_each_record_is_a_row_it_needs_a_value_and_no_key(record):
    reasons = {(None, None): "empty", ("a", None): "empty", (None, "text"): "no JSON object", (b"\xff", "x"): "the key is not UTF-8"}
    records = record((None, {"n": 1}, 0, 0), ("a", {"n": 2}, 0, 1), *((*given, 0, 2 + number) for number, given in enumerate(reasons)))
    assert [row.kafka_offset for row in usable(records, append=True).collect()] == [0, 1]
    letters = unusable(records, "ingest-events", append=True).collect()
    assert [{header.key: header.value.decode() for header in letter.headers}["reason"] for letter in letters] == list(reasons.values())


def test_rows_have_kafkas_columns_and_the_fields(record, location):
    found = newest(
        usable(record(("a", {"x.y": {"d e": [1, 2.5]}, "e": {}, "m": 1, "none": None}, 0, 4), ("b", {"m": "text", "e": {}}, 0, 5)))
    )
    schema = learned(found, location, take_new_fields=True)
    assert [one.name for one in schema.columns] == ["e", "m", "x.y"]
    assert schema.kept_as_text == {"e": "an object without fields", "m": "mixed types"}
    table = table_rows(found, schema.columns).orderBy("kafka_key")
    assert table.columns == ["kafka_key", "kafka_partition", "kafka_offset", "kafka_timestamp", "e", "m", "x.y"]
    one, other = table.collect()
    assert (one["m"], one["e"], one["x.y"]["d e"]) == ("1", "{}", [1.0, 2.5])
    assert (other["m"], other["x.y"]) == ("text", None)
    assert one["kafka_timestamp"].replace(tzinfo=UTC) == NOON + timedelta(seconds=4)


def test_names_that_sql_would_trip_over_are_types_too(record):
    odd = {"OBJECT": 1, "a: OBJECT<b": {"OBJECT<": 2}, "`": "x", "from": True, "1": 1.5}
    seen = observed_type(usable(record(("a", odd, 0, 0))))
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


def test_each_record_is_a_row_once_however_often_its_batch_runs(spark, record, location):
    location = replace(location, append=True)
    learned(usable(record(), append=True), location, take_new_fields=True)  # what `ingest --append` does first
    batches = [
        record((None, {"n": 1}, 0, 0), ("a", {"n": 1}, 0, 1), (None, {"n": 2}, 1, 0)),
        record(("a", {"n": 3, "new": "x"}, 0, 2), (None, None, 0, 3), (None, {"n": 4}, 1, 1)),
        record((None, {"n": 5}, 1, 2)),
    ]
    for batch in [batches[0], batches[1], batches[1], batches[2], batches[0], *batches]:
        put(batch, location)
    table = DeltaTable.forPath(spark, str(location.table))
    rows = table.toDF().select("kafka_key", "kafka_partition", "kafka_offset", "n", "new").orderBy("kafka_partition", "kafka_offset")
    assert [tuple(row) for row in rows.collect()] == [
        (None, 0, 0, 1, None),
        ("a", 0, 1, 1, None),
        ("a", 0, 2, 3, "x"),
        (None, 1, 0, 2, None),
        (None, 1, 1, 4, None),
        (None, 1, 2, 5, None),
    ]
    added = [
        int(row["operationMetrics"]["numTargetRowsInserted"])
        for row in table.history().orderBy("version").collect()
        if row.operation == "MERGE"
    ]
    assert added == [3, 2, 1], "a batch that runs again commits nothing"


def test_a_batch_reads_only_the_files_that_may_have_its_records(record, location):
    location = replace(location, append=True)
    for offset in range(5):
        put(record((None, {"n": offset}, 0, offset)), location)
    for file in Path(str(location.table)).glob("part-*.parquet"):  # a batch that read one of them would fail
        file.unlink()
    put(record((None, {"n": 5}, 0, 5)), location)


def test_a_query_compacts_its_table_itself(spark, record, tmp_path, monkeypatch):
    monkeypatch.setattr(upsert, "BATCHES_PER_COMPACTION", 3)
    settings, source = Settings(home=tmp_path), str(tmp_path / "source")
    location = Location.of("events", settings, append=True)
    learned(usable(record(), append=True), location, take_new_fields=True)
    for offset in range(4):
        record((None, {"n": offset}, 0, offset)).coalesce(1).write.mode("append").parquet(source)
    batches = spark.readStream.schema(RECORD_SCHEMA).option("maxFilesPerTrigger", 1).parquet(source)
    writer = upsert.UpsertTable("events").writer(batches, settings).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    table = DeltaTable.forPath(spark, str(location.table))
    assert [row.operation for row in table.history().orderBy("version").collect()][1:] == ["MERGE", "MERGE", "MERGE", "OPTIMIZE", "MERGE"]
    assert len(table.toDF().inputFiles()) == 2
    assert table.toDF().count() == 4


def test_a_batch_without_anything_usable_makes_an_empty_table(record, location, held):
    put(record(("a", b"rubbish", 0, 0), (None, {"n": 1}, 0, 1)), location)
    assert held() == {}


def test_columns_with_names_that_parquet_does_not_take(record, location, held):
    put(record(("a", {"plain": 1}, 0, 0)), location)
    put(record(("a", {"plain": 2, "a b": {"c;d": 1}, "x.y": "z", "`": 1}, 0, 1)), location)
    assert held() == {"a": (0, 1, {"plain": 2, "a b": {"c;d": 1}, "x.y": "z", "`": 1})}


def test_a_name_of_no_characters_is_not_in_the_files_of_a_table(record, location, held):
    put(record(("a", {"": 1, "n": 2}, 0, 0)), location)
    assert held() == {"a": (0, 0, {"": 1, "n": 2})}
    assert "" not in pyarrow.parquet.read_schema(next(Path(str(location.table)).rglob("part-*.parquet"))).names


def test_a_field_may_have_the_name_by_which_spark_marks_what_it_cannot_read(record, location, held):
    put(record(("a", {"_corrupt_record": "x", "o": {}}, 0, 0)), location)
    put(record(("a", {"_corrupt_record": "y", "o": {"_corrupt_record": 1}}, 0, 1)), location)
    assert held() == {"a": (0, 1, {"_corrupt_record": "y", "o": {"_corrupt_record": 1}})}


def test_new_fields_can_be_left_out_and_are_named(record, location, held):
    put(record(("a", {"n": 1, "s": {"x": 1}}, 0, 0)), location)
    put(record(("a", {"n": 2, "later": 1, "s": {"x": 2, "y": 3}}, 0, 1)), location, take_new_fields=False)
    assert held() == {"a": (0, 1, {"n": 2, "s": {"x": 2}})}
    assert TableSchema.read(location.schema).ignored == ("later", "s.y")


def test_a_type_that_does_not_fit_writes_nothing_and_is_named(record, location):
    TableSchema("events", T.StructType.fromDDL("n bigint, s struct<x array<bigint>>")).write(location.schema)
    with pytest.raises(
        TypeChanged,
        match=r"^field n is bigint in the table and string in the topic; field s\.x\[\] is .*`streamgauge ingest events --infer-schema`",
    ):
        put(record(("a", {"n": "one", "s": {"x": [True]}}, 0, 1), ("b", None, 0, 2)), location)
    assert not location.table.exists()
    assert not location.deletions.exists()


def test_a_record_that_does_not_fit_is_named(record, location):
    put(record(("a", {"n": 1, "d": 1.5}, 0, 0)), location)
    for value, told in [
        ({"n": 2.5}, "field n is bigint in the table and decimal(2,1) in the topic"),
        (
            {"d": 9007199254740993},
            "field d is double in the table and values of mixed types, or numbers that a double rounds, in the topic",
        ),
    ]:
        with refused(f"{told} (as in the record of partition 2, offset 7); ", "`streamgauge ingest events --infer-schema`", by=TypeChanged):
            put(record(("b", {"other": 2}, 0, 1), ("c", value, 2, 7), ("d", value, 2, 8)), location)


def test_whole_numbers_beyond_64_bits_widen_a_bigint_column_and_its_rows_stay(spark, record, location, held):
    put(record(("a", {"n": 1, "o": {"l": [1]}, "s": "x"}, 0, 0)), location)
    put(record(("b", {"n": 2**64, "o": {"l": [2**64]}, "later": 1}, 0, 1)), location, take_new_fields=False)
    assert held() == {"a": (0, 0, {"n": 1, "o": {"l": [1]}, "s": "x"}), "b": (0, 1, {"n": 2**64, "o": {"l": [2**64]}})}
    table = spark.read.format("delta").load(str(location.table))
    assert {name: kind for name, kind in table.dtypes if name in "no"} == {"n": "decimal(38,0)", "o": "struct<l:array<decimal(38,0)>>"}
    assert deltalake.DeltaTable(str(location.table)).to_pyarrow_table().num_rows == 2, "a reader that is not Spark reads it"


TYPES_THAT_CHANGE = {
    "fraction": (1, 1.5, "double"),
    "rounded": (2**53 + 1, "x", "string"),
    "rounds": (1, Decimal("1234567890.1234567890"), "string"),
    "double": (1.5, "x", "string"),
    "digits": (1.5, 2**53 + 1, "string"),
    "flag": (True, 1, "string"),
    "object": ({"x": 1, "m": {}, "n": None}, [1], "string"),
    "array": ([{"x": [1, None]}, None], "x", "string"),
    "names": ({"x": 1}, {f"id{number}": 1 for number in range(MAX_NAMES)}, "string"),
    "within": ([{"x": 1, "y": "a"}], [{"x": False}], "array<struct<x:string,y:string>>"),
    "same": ("x", "y", "string"),
}
"""Of a column, a value that it has, a later one that does not fit, and the type that fits both."""


def test_types_that_change_get_a_column_that_fits_all_when_they_are_inferred_again_and_no_row_is_lost(spark, record, location):
    before, after = ({name: values[number] for name, values in TYPES_THAT_CHANGE.items()} for number in (0, 1))
    later = record(("b", f"{{{','.join(f'{json.dumps(name)}:{json_of(value)}' for name, value in after.items())}}}".encode(), 0, 1))
    put(record(("a", before, 0, 0)), location)
    with refused("`streamgauge ingest events --infer-schema`", by=TypeChanged):
        put(later, location)
    learned(usable(later), location, take_new_fields=True, change_types=True)
    put(later, location)
    table = spark.read.format("delta").load(str(location.table))
    assert {name: kind for name, kind in table.dtypes if name in TYPES_THAT_CHANGE} == {
        name: kind for name, (*_, kind) in TYPES_THAT_CHANGE.items()
    }
    for row, document in zip(table.orderBy("kafka_key").collect(), (before, after), strict=True):
        found = row.asDict(recursive=True)
        wrong = {name: (found[name], value) for name, value in document.items() if not _is_same(found[name], value)}
        assert not wrong, f"column: what the table has, and what the record of key {row.kafka_key} had"


def test_a_schema_from_before_a_type_changed_takes_no_value_from_the_table(record, location, held):
    put(record(("a", {"n": 1}, 0, 0)), location)
    old = TableSchema.read(location.schema)
    changed = record(("b", {"n": "one"}, 0, 1))
    learned(usable(changed), location, take_new_fields=True, change_types=True)
    put(changed, location)
    before = held()
    old.write(location.schema)
    with pytest.raises(SparkFailure):
        put(record(("c", {"n": 2}, 0, 2)), location)
    assert held() == before


def test_whole_numbers_that_a_double_would_round_become_text_where_fractions_come(record, location, held):
    put(record(("a", {"n": 2**53 + 1, "m": 1}, 0, 0)), location)
    later = record(("b", {"n": 0.5, "m": 0.5}, 0, 1))
    learned(usable(later), location, take_new_fields=True, change_types=True)
    put(later, location)
    assert held() == {"a": (0, 0, {"n": "9007199254740993", "m": "1"}), "b": (0, 1, {"n": "0.5", "m": "0.5"})}


BEYOND = 2**256 - 1
NUMBERS = {
    "whole": ("bigint", [1, -(2**63), 2**63 - 1]),
    "wide": ("decimal(38,0)", [1, 2**64 - 1, -(10**38) + 1]),
    "beyond": ("string", [1, BEYOND, -BEYOND]),
    "fraction": ("double", [1.5, 0.30000000000000004, 2**53]),
    "rounded": ("string", [1.5, 2**53 + 1, Decimal("12345678901234567.89")]),
    "alone": ("string", [Decimal("0.1234567890123456789012345678901234567890")] * 3),
    "no_double": ("string", [1.5, Decimal("1e+400"), Decimal("1e-400")]),
    "mixed": ("string", ["1.50", Decimal("1.5"), BEYOND]),
    "within": ("array<string>", [[1], [BEYOND, 2], [Decimal("1.5")]]),
    "text": ("string", [f'a "b\\", {BEYOND}', "1e400", "\\"]),
}
"""The column that holds the numbers of three records, so that each has all its digits."""


def json_of(value):
    if isinstance(value, list):
        return f"[{','.join(map(json_of, value))}]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


def test_a_column_keeps_all_digits_of_each_number(spark, record, location):
    texts = ["{" + ",".join(f'"{name}" : {json_of(values[number])}' for name, (_, values) in NUMBERS.items()) + "}" for number in range(3)]
    put(record(*((f"k{number}", text.encode(), 0, number) for number, text in enumerate(texts))), location)
    table = spark.read.format("delta").load(str(location.table))
    assert {name: kind for name, kind in table.dtypes if name in NUMBERS} == {name: kind for name, (kind, _) in NUMBERS.items()}
    for number, row in enumerate(table.orderBy("kafka_key").collect()):
        for name, (kind, values) in NUMBERS.items():
            kept = values[number]
            if kind == "string":
                kept = kept if isinstance(kept, str) else json_of(kept)
            elif kind == "array<string>":
                kept = [json_of(one) for one in kept]
            assert row[name] == kept, name


def test_digits_within_an_object_that_is_kept_as_text_stay(record, location, held):
    put(record(("a", {"m": {"wei": BEYOND, "x": 1.5, "id": 2**53 + 1}}, 0, 0), ("b", {"m": 1}, 0, 1)), location)
    _, _, fields = held()["a"]
    assert json.loads(fields["m"]) == {"wei": str(BEYOND), "x": 1.5, "id": 2**53 + 1}


WITHOUT_VALUES_FIRST = {
    "s": [None, {}, {"x": None}, {"t": {}}, {"t": {"y": None}}, {"x": 1}, {"t": {"y": 2}}, {"l": []}, {"l": [3]}],
    "l": [None, [], [None], [1], [None, 2]],
    "o": [None, [], [{}], [{"x": None}], [None, {"x": 1}], [{"z": []}], [{"z": ["a"]}]],
    "n": [[], [[]], [[None]], [[1], []]],
    "text": [None, {}, {"x": None}, "a", "{}"],
    "either": [{}, {"x": 1}],
    "never": [None, {}, {"x": None}],
}


def test_any_split_into_batches_gives_the_same_columns_wherever_values_are_null_or_empty(spark, record, tmp_path):
    chance = random.Random(1)
    values = [{name: chance.choice(those) for name, those in WITHOUT_VALUES_FIRST.items() if chance.random() < 0.8} for _ in range(12)]
    values += [{name: those[number % len(those)] for name, those in WITHOUT_VALUES_FIRST.items()} for number in range(9)]
    chance.shuffle(values)
    records = [(f"k{offset}", value, 0, offset) for offset, value in enumerate(values)]
    tables = {}
    for batches in ([0, 21], [0, 1, 2, 4, 9, 21], [0, *sorted(chance.sample(range(1, 21), 2)), 21]):
        location = Location.of("events", Settings(home=tmp_path / str(batches)))
        for first, end in itertools.pairwise(batches):
            put(record(*records[first:end]), location)
        table = spark.read.format("delta").load(str(location.table))
        recount = table_rows(
            newest(usable(record(*records))), T.StructType([one for one in table.schema if not one.name.startswith("kafka_")])
        )
        tables[str(batches)] = shown(table)
        assert tables[str(batches)] == shown(recount), f"the table of batches {batches} is not what its records give"
    one, *others = tables.values()
    assert others == [one, one], f"tables differ by batches: {list(tables)}"


def shown(table):
    """Rows by key, with all nulls, and with fields in the order of their names."""
    found = table.select("kafka_key", F.to_json(F.struct(*table.columns), {"ignoreNullFields": "false"}).alias("row")).collect()
    return {row.kafka_key: json.dumps(json.loads(row.row), sort_keys=True) for row in found}


def test_an_object_of_many_names_is_text(record, location, held):
    put(record(*((f"k{number}", {"by_id": {f"id{number}": 1}, "n": 1}, 0, number) for number in range(MAX_NAMES + 1))), location)
    assert TableSchema.read(location.schema).kept_as_text == {"by_id": f"an object of more than {MAX_NAMES} names"}
    _, _, fields = held()["k7"]
    assert (json.loads(fields["by_id"]), fields["n"]) == ({"id7": 1}, 1)


def test_an_object_that_gets_too_many_names_is_named(record, location):
    put(record(("a", {"by_id": {"first": 1}}, 0, 0)), location)
    many = {f"id{number}": 1 for number in range(MAX_NAMES)}
    with refused("field by_id is an object of 1 names in the table and of 201 in the topic", "partition 0, offset 1", by=TypeChanged):
        put(record(("b", {"by_id": many}, 0, 1)), location)


def test_records_of_too_many_fields_write_nothing(record, location):
    with refused("the records have 3,000 fields, and a table has 1,000 at most", "nothing of the batch was written", by=TooManyFields):
        put(record(*((f"k{first}", {f"id{first + number}": 1 for number in range(1000)}, 0, first) for first in (0, 1000, 2000))), location)
    assert not location.table.exists()
    assert not location.schema.exists()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (b'{"a":' * 99 + b'{"a":1}' + b"}" * 99, ".".join("a" * (MAX_TYPED_LEVELS + 1))),
        (b'{"a":' + b"[" * 99 + b"1" + b"]" * 99 + b"}", "a" + "[]" * MAX_TYPED_LEVELS),
    ],
)
def test_a_hundred_levels_are_a_row_whose_deepest_ones_are_text(record, location, held, value, path):
    put(record(("deep", value, 0, 0), ("plain", {"b": 1}, 0, 1)), location)
    assert TableSchema.read(location.schema).kept_as_text == {path: f"more than {MAX_TYPED_LEVELS} levels"}
    _, _, fields = held()["deep"]
    deepest, whole = fields, json.loads(value)
    while not isinstance(deepest, str):
        deepest, whole = (one["a"] if isinstance(one, dict) else one[0] for one in (deepest, whole))
    assert json.loads(deepest) == whole
    assert held()["plain"] == (0, 1, {"b": 1})


def test_a_batch_begins_anew_when_optimize_has_changed_the_same_files(spark, record, location, held, tmp_path, monkeypatch):
    for offset in range(3):
        put(record((f"k{offset}", {"n": offset}, 0, offset)), location)
    began, optimized = str(tmp_path / "began"), str(tmp_path / "optimized")

    @F.udf("string")
    def once_optimized(key):
        Path(began).touch()
        while not Path(optimized).exists():
            time.sleep(0.02)
        return key

    def optimize():
        try:
            eventually(Path(began).exists, "the MERGE to read its records")
            maintain_delta(LakeTable("events", location.table, "delta"), spark, 7 * 86_400)
        finally:
            Path(optimized).touch()

    attempts = []

    def slowly(found, columns):
        attempts.append(columns)
        return parsed(found, columns).withColumn("kafka_key", once_optimized("kafka_key"))

    monkeypatch.setattr(upsert, "parsed", slowly)
    with ThreadPoolExecutor(1) as thread:
        maintained = thread.submit(optimize)
        put(record(("k1", {"n": 7}, 0, 7), ("k2", None, 0, 8)), location)
        maintained.result()
    assert held() == {"k0": (0, 0, {"n": 0}), "k1": (0, 7, {"n": 7})}
    assert len(attempts) == 2, "OPTIMIZE did not come between"


def test_fields_that_differ_in_case_only_are_named(record, location):
    with pytest.raises(AmbiguousNames, match="field id cannot be a column: ID is another field that differs in case only"):
        put(record(("a", {"ID": 1}, 0, 0), ("b", {"id": 2}, 0, 1)), location)
    assert not location.table.exists()
