"""Encodes changes as Avro in the Confluent wire format with a registered schema, and corrupts encoded values."""

from collections.abc import Callable
from pathlib import Path

import fastavro
import orjson
from confluent_kafka.schema_registry import Schema, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from infrastructure.errors import StreamgaugeError
from infrastructure.registry.client import AVRO, SchemaRegistry
from producers.delivery.faults import damaged_by, empty
from producers.wikimedia.edits import Edit

Encode = Callable[[Edit], bytes]
"""Raises TypeError, ValueError, OverflowError or AttributeError for a change that does not fit the schema."""

UNKNOWN_SCHEMA_ID = 2**31 - 1
_PREFIX_BYTES = 5


def schema_text(path: Path) -> str:
    """The Avro schema in the file at `path`, as JSON. Raises StreamgaugeError if there is none."""
    try:
        text = path.read_text()
        fastavro.parse_schema(orjson.loads(text))
    except (ValueError, TypeError, KeyError, fastavro.schema.SchemaParseException) as error:
        msg = f"schema {path} is not an Avro schema ({error}); expected JSON such as data/schemas/wikimedia-value.avsc"
        raise StreamgaugeError(msg) from error
    return text


def encoder(registry: SchemaRegistry, topic: str, text: str) -> Encode:
    """Registers the schema `text` for the values of `topic` and returns an encoder, which does not need the registry again.

    Raises RegistryUnavailable when the registry does not answer, and StreamgaugeError when it rejects the schema.
    """
    registry.register(f"{topic}-value", text)
    serializer = AvroSerializer(registry.client, Schema(text, AVRO), conf={"subject.name.strategy": topic_subject_name_strategy})
    context = SerializationContext(topic, MessageField.VALUE)
    return lambda edit: serializer(edit, context) or b""


def _unknown_id(value: bytes) -> bytes:
    return value[:1] + UNKNOWN_SCHEMA_ID.to_bytes(4) + value[_PREFIX_BYTES:]


def _wrong_magic_byte(value: bytes) -> bytes:
    return b"\x07" + value[1:]


def _broken(value: bytes) -> bytes:
    # Fields are written in sequence, so a prefix is never a complete value.
    return value[: _PREFIX_BYTES + (len(value) - _PREFIX_BYTES) // 2]


DAMAGES = (_unknown_id, _wrong_magic_byte, _broken, empty)
corrupt = damaged_by(*DAMAGES)
"""Makes a corrupt copy of an encoded change, which cannot be decoded."""
