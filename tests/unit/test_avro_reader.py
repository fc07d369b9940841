"""Avro in the wire format: bytes in, what they say or the reason why they cannot be read out."""

import io
import json
import sys
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import fastavro
import pytest
from schema_server import schemas_served

from audit.values.documents import avro_value
from contract.domains.wikimedia import WIKIMEDIA_PROCESSED
from contract.topic_values import value_decoder
from infrastructure.registry.avro_reader import AGAIN_SECONDS, AvroReader
from infrastructure.registry.client import SchemaRegistry
from infrastructure.registry.nesting import MOST_LEVELS
from infrastructure.registry.server import RegistryServer
from infrastructure.rows import decoder
from infrastructure.storage.data_files import data_file

SCHEMAS = {
    7: '{"type": "record", "name": "order", "fields": [{"name": "text", "type": "string"}]}',
    8: '"string"',
    9: '{"type": "record", "name": "chain", "fields": [{"name": "next", "type": ["null", "chain"]}]}',
    10: '{"type": "record", "name": "order", "fields": [{"name": "x", "type": "of.another.Schema"}]}',
    12: '"boolean"',
    13: '"int"',
    14: '["null", "long"]',
    15: '{"type": "enum", "name": "size", "symbols": ["S", "M"]}',
    16: '{"type": "array", "items": "int"}',
}
PREFIX = b"\0\0\0\0"


@pytest.fixture
def registry():
    with schemas_served(SCHEMAS) as (address, asked):
        made = SchemaRegistry(RegistryServer(address))
        made.asked = asked
        yield made


def chain(levels):
    return PREFIX + b"\x09" + b"\x02" * levels + b"\0"


def test_a_value_is_read_by_its_schema_and_what_follows_it_is_counted(registry):
    reader = AvroReader(registry)
    assert reader.read(PREFIX + b"\x07\x02a") == ({"text": "a"}, 0)
    assert reader.read(PREFIX + b"\x08\x02amore") == ("a", 4)
    assert avro_value(PREFIX + b"\x07\x02a", AvroReader(registry)) == {"text": "a"}


def test_the_registry_is_asked_once_for_each_schema(registry):
    reader = AvroReader(registry)
    for _ in range(3):
        reader.read(PREFIX + b"\x07\x02a")
        with pytest.raises(ValueError, match="99"):
            reader.read(PREFIX + b"\x63")
    assert len(registry.asked) == 2, registry.asked


def test_a_schema_that_is_registered_later_is_found_then(registry, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("infrastructure.registry.avro_reader.time", SimpleNamespace(monotonic=lambda: now[0]))
    reader, schemas = AvroReader(registry), dict(SCHEMAS)
    monkeypatch.setattr(registry, "schema", schemas.get)
    with pytest.raises(ValueError, match="no Avro schema of id 11"):
        reader.read(PREFIX + b"\x0b\x02a")
    schemas[11] = SCHEMAS[7]
    now[0] = AGAIN_SECONDS
    assert reader.read(PREFIX + b"\x0b\x02a").data == {"text": "a"}


def test_a_value_may_nest_as_deep_as_the_pipeline_reads(registry):
    found, _ = AvroReader(registry).read(chain(MOST_LEVELS - 10))
    levels = 0
    while found := found["next"]:
        levels += 1
    assert levels == MOST_LEVELS - 10


def test_a_reading_leaves_pythons_recursion_limit_as_it_is_which_is_that_of_all_threads(registry, monkeypatch):
    limits = set()

    class Value(io.BytesIO):
        def read(self, size=-1):
            limits.add(sys.getrecursionlimit())
            return super().read(size)

    monkeypatch.setattr("infrastructure.registry.avro_reader.io", SimpleNamespace(BytesIO=Value))
    AvroReader(registry).read(chain(2))
    assert limits == {sys.getrecursionlimit()}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "empty"),
        (b"\0\0\0\7", "not in the Confluent wire format"),
        (b"\1\0\0\0\7\2a", "not in the Confluent wire format"),
        (PREFIX + b"\x63\2a", "the registry has no Avro schema of id 99"),
        (b"\0\xff\xff\xff\xff", "the registry has no Avro schema of id 4294967295"),
        (PREFIX + b"\7\4a", "broken, or not what its schema says, id 7"),
        (PREFIX + b"\7\2\xff", "a text in it is not UTF-8, id 7"),
        (chain(100_000), "longer than 500 bytes, so that it may nest too deep: the schema of id 9 contains its own type"),
        (
            PREFIX + b"\x0a\2a",
            "the schema of id 10 cannot be used: it is not valid, or refers to other schemas (UnknownType: of.another.Schema)",
        ),
    ],
)
def test_what_cannot_be_read_has_the_reason_of_a_dead_letter(registry, value, reason):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared below
        AvroReader(registry).read(value)
    assert str(raised.value) == avro_value(value, AvroReader(registry)) == reason


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (b"\x0c\0", False),
        (b"\x0c\1", True),
        (b"\x0c\2", False),
        (b"\x0c\xff", False),
        (b"\x0c", None),
        (b"\x0d\x80\0", 0),
        (b"\x0d\xff\xff\xff\xff\x0f", -(2**31)),
        (b"\x0d\xff\xff\xff\xff\x7f", -(2**31)),
        (b"\x0d\xff\xff\xff\xff\xff\0", None),
        (b"\x0e\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", -(2**63)),
        (b"\x0e\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0", None),
        (b"\x0e\1\4", None),
        (b"\x0e\4\4", None),
        (b"\x0f\2", "M"),
        (b"\x0f\1", None),
        (b"\x0f\4", None),
        (b"\x10\1\2\4\0", [2]),
        (b"\x10\4\2", None),
    ],
)
def test_bytes_mean_what_they_mean_to_java(registry, value, meant):
    reader = AvroReader(registry)
    if meant is None:
        with pytest.raises(ValueError, match="broken, or not what its schema says"):
            reader.read(PREFIX + value)
    else:
        assert reader.read(PREFIX + value) == (meant, 0)


def test_what_is_no_record_is_nothing_that_the_audit_takes(registry):
    assert avro_value(PREFIX + b"\x08\x02a", AvroReader(registry)) == "the schema of id 8 cannot be used: it is not a record"
    assert avro_value(None, AvroReader(registry)) == "empty"


def test_a_row_of_a_result_topic_is_as_json_has_it():
    schema, start = data_file("schemas/wikimedia.processed-value.avsc").read_text(), datetime(2026, 1, 1, 10, tzinfo=UTC)
    row = {"window": {"start": start, "end": start + timedelta(minutes=1)}, "requested_by": "Bot", "counts": 3}
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, fastavro.parse_schema(json.loads(schema)), row)
    with schemas_served({7: schema}) as (address, _):
        decode = value_decoder(WIKIMEDIA_PROCESSED, RegistryServer(address))
        as_json_has_it = decode(PREFIX + b"\x07" + payload.getvalue())
        assert as_json_has_it == row | {"window": {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T10:01:00Z"}}
        assert decoder(WIKIMEDIA_PROCESSED.row, decode)(PREFIX + b"\x07" + payload.getvalue()) == row
        with pytest.raises(ValueError, match="no Avro schema of id 8"):
            decode(PREFIX + b"\x08" + payload.getvalue())
