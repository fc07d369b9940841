"""Spark's types of Avro schemas without Spark, against those of `from_avro`."""

import json

import pytest
from avro import V1, V2
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro

from pipeline.formats.avro_schemas import without_new_types
from pipeline.formats.avro_types import spark_type

INNER = {"type": "record", "name": "inner", "fields": [{"name": "x", "type": "int"}]}
LOGICAL = [
    *(("int", name) for name in ("date", "time-millis")),
    *(("long", f"{local}timestamp-{unit}") for local in ("", "local-") for unit in ("millis", "micros", "nanos")),
    ("long", "time-micros"),
    ("string", "uuid"),
]
FIELDS = [
    *("null", "boolean", "int", "long", "float", "double", "bytes", "string", INNER),
    *({"type": kind, "logicalType": name} for kind, name in LOGICAL),
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 9},
    {"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"},
    {"type": "fixed", "name": "f", "size": 3},
    {"type": "enum", "name": "e", "symbols": ["A"]},
    {"type": "array", "items": ["null", "string"]},
    {"type": "array", "items": INNER},
    {"type": "map", "values": ["null", {"type": "map", "values": "long"}]},
    ["null", "int"],
    ["string", "null"],
    ["int"],
    ["null"],
    ["int", "long"],
    ["null", "float", "double"],
    ["long", "null", "string", INNER],
    ["int", "string"],
    [{"type": "int", "logicalType": "date"}, "long"],
]


@pytest.mark.parametrize("field", FIELDS, ids=json.dumps)
def test_a_field_has_the_type_that_spark_gives_it(spark, field):
    agrees(spark, json.dumps({"type": "record", "name": "of", "fields": [{"name": "field", "type": field}]}))


@pytest.mark.parametrize("schema", [V1, V2, '"string"', '["null", "long"]', '{"type": "array", "items": "int"}'])
def test_a_schema_has_the_type_that_spark_gives_it(spark, schema):
    agrees(spark, schema)


def agrees(spark, schema):
    read = json.dumps(without_new_types(json.loads(schema)))
    found = spark.range(1).select(from_avro(F.lit(None).cast("binary"), read).alias("value")).schema["value"].dataType
    assert spark_type(schema).jsonValue() == found.jsonValue()
