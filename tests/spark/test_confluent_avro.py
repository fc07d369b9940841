"""The wire format as columns: which values are read, by which schema, what is said of the others, and when a query stops."""

import json
import struct
from dataclasses import replace

import pytest
from avro import V1, V2, change, in_wire_format
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from pipeline.formats.confluent_avro import IS_READ, WriterSchemas, encoded, events, schema_ids, unknown_ids

SCHEMAS = WriterSchemas(V1, {3: V1, 2**31 - 1: V2}, absent=frozenset({77}), ends={0: 100})
GOOD = in_wire_format(change(1, at=0), 3)


def read(records, *values, schemas=SCHEMAS):
    return [row.event for row in events(records(*values), schemas).orderBy("offset").collect()]


def reasons(records, *values, schemas=SCHEMAS):
    reason = schemas.reason(F.col("value"), F.col("event"))
    return [row.reason for row in events(records(*values), schemas).withColumn("reason", reason).orderBy("offset").collect()]


def test_each_value_is_read_by_the_schema_whose_id_it_carries(records):
    newer = in_wire_format(change(2, at=0, schema_uri="/v2", title="Ä"), 2**31 - 1, V2)
    first, second = read(records, GOOD, newer)
    assert (first.id, first.title, first.schema_uri, first.meta.offset) == (3_000_000_001, "Page 1", None, 5_000_000_000)
    assert (second.id, second.title, second.schema_uri) == (3_000_000_002, "Ä", "/v2")


def test_reading_keeps_no_schema_for_ever(spark):
    """Avro's fast reader would, AVRO-4253: one for each task."""
    assert not spark._jvm.org.apache.avro.generic.GenericData.get().isFastReaderEnabled()


def test_a_value_that_cannot_be_read_has_a_reason_and_its_neighbours_are_read(records):
    expected = [
        (GOOD, None),
        (None, "empty"),
        (b"", "empty"),
        (b"\x00", "not in the Confluent wire format"),
        (b"\x01" + GOOD[1:], "not in the Confluent wire format"),
        (b'{"type": "edit"}', "not in the Confluent wire format"),
        (GOOD[:5], "broken, or not what its schema says, id 3"),
        (GOOD[:-3], "broken, or not what its schema says, id 3"),
        (GOOD[:5] + b"\xff" * 100, "broken, or not what its schema says, id 3"),
        (b"\x00" + struct.pack(">I", 77) + GOOD[5:], "the registry has no Avro schema of id 77"),
        (b"\x00\xff\xff\xff\xff" + GOOD[5:], "the registry has no Avro schema of id 4294967295"),
        (GOOD, None),
    ]
    values = [value for value, _ in expected]
    assert list(zip(values, reasons(records, *values), strict=True)) == expected
    are_read = [event is not None and event[IS_READ] for event in read(records, *values)]
    assert [bool(is_read) for is_read in are_read] == [reason is None for _, reason in expected]


def test_a_text_that_claims_to_be_of_two_gigabytes_is_broken_and_nothing_more(records):
    claims = b"\xfe\xff\xff\xff\x0f"  # 2^31 - 1 as Avro writes it
    writer = json.dumps({"type": "record", "name": "R", "fields": [{"name": "type", "type": "string"}]})
    assert reasons(records, b"\x00\x00\x00\x00\x03" + claims + b"abc", schemas=WriterSchemas(V1, {3: writer})) == [
        "broken, or not what its schema says, id 3"
    ]


def test_a_text_that_is_not_utf8_has_a_reason_wherever_it_is(records):
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "text", "type": ["null", "string"]}]}
    kinds = {
        "plain": "string",
        "next": ["null", "string"],
        "of_java": {"type": "string", "avro.java.string": "String"},
        "many": {"type": "array", "items": "string"},
        "by_name": {"type": "map", "values": "string"},
        "inner": inner,
        "inners": {"type": "array", "items": "Inner"},
        "raw": "bytes",
    }
    writer = json.dumps({"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in kinds.items()]})
    empty = {"plain": "", "next": None, "of_java": "", "many": [], "by_name": {}, "inner": {"text": None}, "inners": [], "raw": b""}
    texts = [
        {"plain": "@"},
        {"plain": "@", "next": "#"},
        {"next": "@"},
        {"of_java": "@"},
        {"many": ["", "@"]},
        {"by_name": {"@": ""}},
        {"by_name": {"": "@"}},
        {"inner": {"text": "@"}},
        {"inners": [{"text": None}, {"text": "@"}]},
    ]

    def written(row, byte):
        return in_wire_format({**empty, **row}, 5, writer).replace(b"@", byte).replace(b"#", b"\xa9")

    fine = [written(empty, b""), written({"raw": b"@"}, b"\xff"), *(written(row, b"A") for row in texts if "#" not in row.values())]
    spoilt = [written(row, b"\xc3") for row in texts]  # \xc3\xa9 is one character, in one text
    reason = "a text in it is not UTF-8, id 5"
    assert reasons(records, *fine, *spoilt, schemas=WriterSchemas(V1, {5: writer})) == [None] * len(fine) + [reason] * len(spoilt)


def test_an_id_that_nobody_asked_the_registry_for_fails_and_says_which(records):
    with pytest.raises(PySparkException) as failure:
        read(records, GOOD, b"\x00\x00\x00\x01\x00" + GOOD[5:])
    assert unknown_ids(str(failure.value)) == {256}


def test_without_a_schema_any_id_is_unknown_and_the_rest_has_its_reason(records):
    assert reasons(records, b"", b"\x01", schemas=WriterSchemas(V1)) == ["empty", "not in the Confluent wire format"]
    with pytest.raises(PySparkException, match="a schema id that was not known"):
        read(records, GOOD, schemas=WriterSchemas(V1))


def test_when_too_many_ids_came_every_other_one_is_a_dead_letter(records):
    schemas = WriterSchemas(V1, {3: V1}, absent=frozenset({77}), ends={0: 2}, is_full=True)
    values = [b"\x00" + struct.pack(">I", number) + GOOD[5:] for number in (3, 77, 256)] + [GOOD[:-3]]
    assert reasons(records, *values, schemas=schemas) == [
        None,
        "the registry has no Avro schema of id 77",
        "more than 100 ids came that the registry does not have, and it was not asked for id 256",
        "broken, or not what its schema says, id 3",
    ]


def test_another_failure_names_no_ids():
    assert unknown_ids("java.lang.OutOfMemoryError: Java heap space") == set()


def test_new_schema_ids_are_those_of_values_in_the_wire_format_the_most_frequent_first(records):
    rare, frequent = b"\x00\x00\x00\x01\x00", b"\x00\x00\x00\x02\x00"
    values = records(GOOD, rare, frequent, frequent, b"\x01\x00\x00\x00\x09", b"\x00\x00", None, b"")
    assert schema_ids(values, SCHEMAS) == [512, 256]
    assert schema_ids(values, replace(SCHEMAS, absent=frozenset({512}))) == [256], "the registry was asked for it"
    assert schema_ids(values, replace(SCHEMAS, is_full=True)) == [], "the registry is asked for none any more"


def test_a_writer_whose_types_are_others_spoils_its_own_values_only(records):
    writer = '{"type": "record", "name": "R", "fields": [{"name": "type", "type": {"type": "array", "items": "long"}}]}'
    spoilt = bytes([0, 0, 0, 0, 4]) + b"\x02a"
    assert reasons(records, GOOD, spoilt, schemas=WriterSchemas(V1, {3: V1, 4: writer})) == [
        None,
        "broken, or not what its schema says, id 4",
    ]


def test_what_is_encoded_here_is_read_by_fastavro(spark):
    import io

    import fastavro

    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}]})
    frame = spark.createDataFrame([(5, "x")], "a long, b string")
    value = bytes(frame.select(encoded(F.struct("a", "b"), 258, schema).alias("value")).first().value)
    assert value[:5] == b"\x00\x00\x00\x01\x02"
    assert fastavro.schemaless_reader(io.BytesIO(value[5:]), json.loads(schema), None) == {"a": 5, "b": "x"}
