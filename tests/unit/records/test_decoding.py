"""What bytes hold: bytes in, their form and a text that is safe to print out."""

import datetime as dt
import io
import json
import struct
from decimal import Decimal

import fastavro
import pytest
from messages import absent
from schema_server import schemas_served

from infrastructure.registry.server import RegistryServer
from streamgauge.records.decoding import Decoder, without_schema

FIELDS = [
    {"name": "text", "type": "string"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "raw", "type": "bytes"},
    {"name": "ratio", "type": "double"},
]
SCHEMAS = {
    7: json.dumps({"type": "record", "name": "order", "fields": FIELDS}),
    8: '"string"',
}
AWAY = RegistryServer("http://127.0.0.1:9")


@pytest.fixture
def decoder():
    with schemas_served(SCHEMAS) as (address, _):
        yield Decoder(RegistryServer(address))


def avro(schema_id, value):
    written = io.BytesIO(struct.pack(">bI", 0, schema_id))
    written.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(written, fastavro.parse_schema(json.loads(SCHEMAS[schema_id])), value)
    return written.getvalue()


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (None, None, ""),
        (b"", "text", ""),
        (b"home-1", "text", "home-1"),
        (b"12", "text", "12"),
        (b"\xff\xfe", "hex", "fffe"),
        (b"\0\0", "text", r"\u0000\u0000"),
        (b"a\x1b[2Jb\r\nc\t\x07\x7f", "text", r"a\u001b[2Jb\r\nc\t\u0007\u007f"),
        ("\x9b31m \u202e \U000e0001".encode(), "text", r"\u009b31m \u202e \udb40\udc01"),
        (b'{"b": 1.50, "a": 12345678901234567890123}', "json", '{"b": 1.50, "a": 12345678901234567890123}'),
        (b'\n{"a":\r\n\t[]}\n', "json", '{"a":   []}'),
        ('{"a": "\x9b31m\x7f"}'.encode(), "json", r'{"a": "\u009b31m\u007f"}'),
        (b'{"a": 1} {"b": 2}', "text", '{"a": 1} {"b": 2}'),
        (b"[" * 5000, "text", "[" * 5000),
    ],
)
def test_what_is_not_in_the_wire_format(value, form, text):
    found = Decoder(AWAY).decoded(value)
    assert (found.form, found.text) == (form, text)
    assert text.isprintable()


def test_json_stays_the_same_json_when_it_is_made_safe():
    value = '{"\x85": ["\u2028\x7f", "\\u001b", "é\N{GRINNING FACE}\U000e0001"]}'
    assert json.loads(without_schema(value.encode()).text) == json.loads(value)


def test_avro_is_read_by_the_schema_that_its_prefix_names(decoder):
    at = dt.datetime(2026, 1, 1, 10, 0, 0, 250, tzinfo=dt.UTC)
    found = decoder.decoded(avro(7, {"text": "\x1b[2J", "at": at, "price": Decimal("12.50"), "raw": b"\xff", "ratio": float("nan")}))
    assert (found.form, found.schema_id, found.note) == ("avro", 7, None)
    assert found.text == r'{"text":"\u001b[2J","at":"2026-01-01T10:00:00.000250Z","price":12.50,"raw":"/w==","ratio":"NaN"}'
    assert decoder.decoded(avro(8, "home-1")).text == '"home-1"'


@pytest.mark.parametrize(
    ("value", "why"),
    [(b"\0\0\0\0\x63abc", "has no Avro schema of id 99"), (b"\0\0\0\0\x08\x0cab", "broken"), (b"\0\0\0\0\0\0\0\7", "id 0")],
    ids=["unknown", "cut", "a number of Java"],
)
def test_what_cannot_be_read_is_hex_with_the_reason(decoder, value, why):
    found = decoder.decoded(value)
    assert (found.form, found.text, found.schema_id) == ("hex", value.hex(), None)
    assert why in found.note


def test_bytes_after_a_value_are_told(decoder):
    found = decoder.decoded(avro(8, "home-1") + b"more")
    assert (found.form, found.text) == ("avro", '"home-1"')
    assert absent(found.note, "4 bytes", "schema 8") == []


def test_json_behind_the_prefix_is_json(decoder):
    found = decoder.decoded(b'\0\0\0\0\x63{"a": 1}')
    assert (found.form, found.text, found.schema_id, found.note) == ("json", '{"a": 1}', 99, None)


def test_without_a_registry_avro_is_hex_and_it_is_not_asked_each_time(monkeypatch):
    decoder, value = Decoder(AWAY), avro(8, "home-1")
    found = decoder.decoded(value)
    assert (found.form, found.text, found.schema_id) == ("hex", value.hex(), 8)
    assert absent(found.note, "http://127.0.0.1:9", "`streamgauge up`") == []
    monkeypatch.setattr(decoder, "reader", None)
    assert decoder.decoded(value) == found


@pytest.mark.parametrize(
    ("key", "text", "has_it"),
    [
        (b"home-1", "home-1", True),
        (b"home-10", "home-1", False),
        (b'{"zip_code":"10025","window":{"start":"2026-01-01"}}', "10025", True),
        (b'{"zip_code":"10025","window":{"start":"2026-01-01"}}', "2026-01-01", True),
        (b'{"zip_code":"10025"}', "zip_code", False),
        (b'{"zip_code":"10025"}', '{"zip_code":"10025"}', True),
        (b'{"id":[7,true,null]}', "7", True),
        (b'{"id":[7,true,null]}', "true", True),
        (b'{"id":[7,true,null]}', "None", False),
        (b"\xff", "ff", True),
        (None, "", False),
    ],
)
def test_a_key_has_a_text_if_it_is_the_text_or_a_field_of_it_is(key, text, has_it):
    assert Decoder(AWAY).decoded(key).has(text) is has_it
