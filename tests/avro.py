"""Changes of wikis as confluent-kafka writes them: what the tests of the Wikimedia domain start from."""

import io
import json
import struct
from collections.abc import Iterable
from typing import Any

import fastavro
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file

V1 = data_file("schemas/wikimedia-value.avsc").read_text()
V2 = data_file("schemas/wikimedia-value.v2.avsc").read_text()


def with_field(name: str, kind: Any, **more: Any) -> str:
    """Version 1 with one more field."""
    own = json.loads(V1)
    return json.dumps({**own, "fields": [*own["fields"], {"name": name, "type": kind, **more}]})


def change(number: int, *, at: int, bot: bool = False, kind: str = "edit", grown: int = 10, **fields: Any) -> dict[str, Any]:
    """An edit, or another change, `at` a time in seconds since 1970; `number` makes its id."""
    return {
        "id": 3_000_000_000 + number,
        "type": kind,
        "wiki": "enwiki",
        "namespace": 0,
        "title": f"Page {number % 50}",
        "user": "Somebody",
        "bot": bot,
        "timestamp": at,
        "comment": "a comment of usual length, with a [[link]] in it",
        "length": {"old": 1000, "new": 1000 + grown} if kind == "edit" else None,
        "meta": {"id": f"id-{number}", "dt": "2026-01-01T00:00:00Z", "domain": "en.wikipedia.org", "offset": 5_000_000_000},
        **fields,
    }


def nullable(*names: str) -> str:
    """Version 1 of the schema, except that these fields may be null."""
    schema = json.loads(V1)
    fields = [{**field, "type": ["null", field["type"]]} if field["name"] in names else field for field in schema["fields"]]
    return json.dumps({**schema, "fields": fields})


def in_wire_format(row: dict[str, Any], schema_id: int, schema: str = V1) -> bytes:
    """The row as fastavro writes it, behind the prefix with `schema_id`."""
    value = io.BytesIO()
    value.write(struct.pack(">bI", 0, schema_id))
    fastavro.schemaless_writer(value, fastavro.parse_schema(json.loads(schema)), row)
    return value.getvalue()


def serialized(settings: Settings, changes: Iterable[dict[str, Any]], schema: str = V1) -> list[bytes]:
    """The values of topic wikimedia, as confluent-kafka's serializer writes them; it registers the schema."""
    serialize = AvroSerializer(SchemaRegistryClient({"url": settings.registry_url}), schema)
    return [serialize(one, SerializationContext("wikimedia", MessageField.VALUE)) for one in changes]
