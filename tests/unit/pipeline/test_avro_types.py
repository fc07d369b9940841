"""An Avro schema in, Spark's type out. tests/spark/test_avro_types.py compares them with those of `from_avro`."""

import json

import pytest
from messages import refused

from pipeline.formats.avro_schemas import UnusableSchemaError
from pipeline.formats.avro_types import spark_type


def record(name, **fields):
    return {"type": "record", "name": name, "fields": [{"name": field, "type": kind} for field, kind in fields.items()]}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("string", "string"),
        ({"type": "string"}, "string"),
        (record("a", i="int", l="long", f="float", d="double"), "struct<i:int,l:bigint,f:float,d:double>"),
        (record("a", t={"type": "long", "logicalType": "timestamp-millis"}), "struct<t:timestamp>"),
        (record("a", t={"type": "long", "logicalType": "local-timestamp-micros"}), "struct<t:timestamp_ntz>"),
        (record("a", d={"type": "int", "logicalType": "date"}), "struct<d:date>"),
        (record("a", d={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}), "struct<d:decimal(9,2)>"),
        (record("a", d={"type": "fixed", "name": "d", "size": 4, "logicalType": "decimal", "precision": 9}), "struct<d:decimal(9,0)>"),
        (record("a", u={"type": "string", "logicalType": "uuid"}), "struct<u:string>"),
        (record("a", e={"type": "enum", "name": "e", "symbols": ["x"]}), "struct<e:string>"),
        (record("a", m={"type": "map", "values": ["null", "int"]}), "struct<m:map<string,int>>"),
        (record("a", u=["int", "long"]), "struct<u:bigint>"),
        (record("a", u=["null", "int", "string"]), "struct<u:struct<member0:int,member1:string>>"),
        (record("a", b=record("b", x="int"), c=["null", "b"]), "struct<b:struct<x:int>,c:struct<x:int>>"),
    ],
)
def test_a_type_for_each_schema(schema, expected):
    assert spark_type(json.dumps(schema)).simpleString() == expected


def test_only_what_may_be_null_is_nullable():
    found = spark_type(json.dumps(record("a", x="int", y=["null", "int"], z={"type": "array", "items": ["null", "int"]})))
    assert [(field.name, field.nullable) for field in found] == [("x", False), ("y", True), ("z", False)]
    assert found["z"].dataType.containsNull


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("{", "JSONDecodeError"),
        (json.dumps(record("a", x="of.another.Schema")), "of.another.Schema"),
        (json.dumps(record("a", next=["null", "a"])), "type a contains itself"),
    ],
)
def test_what_spark_cannot_read_says_why(text, fact):
    with refused(fact, by=UnusableSchemaError):
        spark_type(text)
