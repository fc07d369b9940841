"""Schemas that others have registered: which the queries can use, and what values of them are."""

import io
import json
import struct
from decimal import Decimal

import fastavro
import pytest
from avro import V1, change

from audit.domains.wikimedia import reader_of

OWN = json.loads(V1)
ROW = change(1, at=0)


def with_field(name, kind):
    """The project's schema with one more field."""
    return {**OWN, "fields": [*OWN["fields"], {"name": name, "type": kind}]}


def with_types(**kinds):
    """The project's schema with other types of these fields."""
    return {**OWN, "fields": [{**field, "type": kinds.get(field["name"], field["type"])} for field in OWN["fields"]]}


def record(*fields):
    return {"type": "record", "name": "Other", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def decimal(precision):
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def read(schema, row, written_by=None):
    """What the audit reads of a row."""

    class Registry:
        def schema(self, _):
            return json.dumps(schema)

    value = io.BytesIO()
    fastavro.schemaless_writer(value, fastavro.parse_schema(written_by or schema), row)
    return reader_of(Registry()).read(struct.pack(">bI", 0, 7) + value.getvalue()).data


@pytest.mark.parametrize(
    ("schema", "row", "why"),
    [
        (with_field("amount", decimal(39)), {**ROW, "amount": Decimal(1)}, "a decimal of 39 digits"),
        (with_field("x", {"type": "map", "values": record(("y", decimal(50)))}), {**ROW, "x": {}}, "a decimal of 50 digits"),
        (with_field("User", "string"), {**ROW, "User": ""}, "several fields whose names are user in lower case"),
        (with_field("x", record(("a", "int"), ("A", "int"))), {**ROW, "x": {"a": 1, "A": 1}}, "several fields whose names are a in lower case"),
        (with_field("_Is_Read", "boolean"), {**ROW, "_Is_Read": True}, "several fields whose names are _is_read"),
        (with_types(timestamp={"type": "long", "logicalType": "timestamp-millis"}), ROW, "a number of the project's is a timestamp-millis in it"),
        (record(("a-b", "long")), {"a-b": 1}, "a-b is not a name"),
        (with_field("x", {"type": "array", "items": "null"}), {**ROW, "x": [None]}, "an array whose items take no bytes"),
        ([OWN, record(("a", "long"))], ROW, "it is not a record"),
        (["null", OWN], ROW, "it is not a record"),
        ({"type": "map", "values": "string"}, {"type": "edit"}, "it is not a record"),
    ],
)  # fmt: skip
def test_a_schema_that_queries_cannot_use_has_the_reason_of_a_dead_letter(schema, row, why):
    with pytest.raises(ValueError, match="the schema of id 7 cannot be used: ") as raised:
        read(schema, row)
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "written", "found"),
    [
        (decimal(38), b"\x85", Decimal("-1.23")),
        ({"type": "bytes", "logicalType": "decimal"}, b"\x85", b"\x85"),
        ({"type": "long", "logicalType": "timestamp-millis"}, 5, 5_000),
        ({"type": "long", "logicalType": "timestamp-micros"}, 2**63 - 1, 2**63 - 1),
        ({"type": "int", "logicalType": "date"}, 2**31 - 1, 2**31 - 1),
        ({"type": "int", "logicalType": ["date"]}, 5, 5),
        ({"type": "int", "logicalType": "time-millis"}, -1, -1),
        ({"type": "string", "logicalType": "uuid"}, "none", "none"),
        (["null", f"{OWN['namespace']}.{OWN['name']}"], None, None),
        (["null", {**record(("Title", ["null", "Other"])), "name": "Other"}], {"Title": None}, {"Title": None}),
    ],
)
def test_a_value_is_what_is_written_whatever_it_means_to_others(kind, written, found):
    plain = {name: kind[name] for name in ("type", "size") if name in kind} if isinstance(kind, dict) else kind
    assert read(with_field("x", kind), {**ROW, "x": written}, written_by=with_field("x", plain))["x"] == found


@pytest.mark.parametrize(
    ("kind", "written"), [(decimal(2), b"\x7f"), (decimal(2), b""), ({"type": "long", "logicalType": "timestamp-millis"}, 2**62)]
)
def test_a_value_that_its_type_does_not_hold_is_broken(kind, written):
    with pytest.raises(ValueError, match="broken, or not what its schema says, id 7"):
        read(with_field("x", kind), {**ROW, "x": written}, written_by=with_field("x", kind["type"]))


@pytest.mark.parametrize(
    ("name", "kind", "written", "found"),
    [
        ("wiki", "bytes", "é".encode(), "é"),
        ("timestamp", "double", 1.5, 1.5),
        ("title", ["null", "int"], None, None),
        ("title", ["null", "int"], 5, "broken"),
        ("title", "bytes", b"\xff", "a text in it is not UTF-8"),
        ("wiki", {"type": "enum", "name": "Wiki", "symbols": ["enwiki"]}, "enwiki", "broken"),
        ("minor", ["null", "int"], 1, "broken"),
        ("length", {"type": "map", "values": "long"}, {"old": 1}, "broken"),
        ("meta", record(("id", "string"), ("dt", "long")), {"id": "a", "dt": 1}, "broken"),
    ],
)
def test_the_project_s_schema_decides_what_its_fields_may_be(name, kind, written, found):
    schema = {**with_types(**{name: kind}), "fields": [{"name": name, "type": kind}]}
    if found in ("broken", "a text in it is not UTF-8"):
        with pytest.raises(ValueError, match=found):
            read(schema, {name: written})
    else:
        assert read(schema, {name: written}) == {name: found}
