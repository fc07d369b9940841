"""Changes as Avro in the Confluent wire format, by a schema that the registry knows; and such values damaged."""

import time
from collections.abc import Callable
from pathlib import Path

import fastavro
import orjson
from confluent_kafka.schema_registry import Schema, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from contract.errors import StreamgaugeError
from contract.registry.client import AVRO, RegistryAway, SchemaRegistry
from producers.delivery.events import Idle
from producers.wikimedia.edits import Edit

Encode = Callable[[Edit], bytes]
"""Raises TypeError or ValueError for a change that the schema has no place for."""

UNKNOWN_SCHEMA_ID = 2**31 - 1
_PREFIX_BYTES = 5
_SECONDS_BETWEEN_TRIES = 1.0


def schema_text(path: Path) -> str:
    """The Avro schema in the file at `path`, as JSON; raises StreamgaugeError when there is none."""
    try:
        text = path.read_text()
        fastavro.parse_schema(orjson.loads(text))
    except OSError as error:
        msg = f"schema {path} cannot be read ({error.strerror}); expected a file that holds an Avro schema"
        raise StreamgaugeError(msg) from error
    except (ValueError, TypeError, KeyError, fastavro.schema.SchemaParseException) as error:
        msg = f"schema {path} is no Avro schema ({error}); expected JSON such as data/schemas/wikimedia-value.avsc"
        raise StreamgaugeError(msg) from error
    return text


def encoder(registry: SchemaRegistry, topic: str, text: str, notice: Callable[[str], None], idle: Idle) -> Encode | None:
    """Registers the schema `text` for the values of `topic`, and returns what writes them; None when a stop came first.

    A registry that does not answer is waited for, with a line when that begins and when it ends; once it has given out the schema's id
    it is not asked again. Raises StreamgaugeError when it refuses the schema.
    """
    if not _registered(registry, f"{topic}-value", text, notice, idle):
        return None
    serializer = AvroSerializer(registry.client, Schema(text, AVRO), conf={"subject.name.strategy": topic_subject_name_strategy})
    context = SerializationContext(topic, MessageField.VALUE)

    def encode(edit: Edit) -> bytes:
        return serializer(edit, context) or b""

    return encode


def _registered(registry: SchemaRegistry, subject: str, text: str, notice: Callable[[str], None], idle: Idle) -> bool:
    away_since: float | None = None
    while not idle.is_stopped():
        try:
            registry.register(subject, text)
        except RegistryAway as away:
            if away_since is None:
                away_since = time.monotonic()
                notice(f"waiting: {away}")
            idle.wait(_SECONDS_BETWEEN_TRIES)
        else:
            if away_since is not None:
                notice(f"the schema registry at {registry.url} is back after {time.monotonic() - away_since:.0f} s")
            return True
    return False


def _unknown_id(value: bytes) -> bytes:
    return value[:1] + UNKNOWN_SCHEMA_ID.to_bytes(4) + value[_PREFIX_BYTES:]


def _wrong_magic_byte(value: bytes) -> bytes:
    return b"\x07" + value[1:]


def _broken(value: bytes) -> bytes:
    # The fields are written one after the other, so a part of them is never the whole.
    return value[: _PREFIX_BYTES + (len(value) - _PREFIX_BYTES) // 2]


def _empty(_: bytes) -> bytes:
    return b""


DAMAGES: tuple[Callable[[bytes], bytes], ...] = (_unknown_id, _wrong_magic_byte, _broken, _empty)


def corrupt(value: bytes, number: int) -> bytes:
    """A damaged copy of the encoded change `value`; the kinds of damage take turns by `number`. None of them can be decoded."""
    return DAMAGES[number % len(DAMAGES)](value)
