"""Avro values in the Confluent wire format, each read by the schema that wrote it, with fastavro.

fastavro reads more than Avro's specification allows, and Java reads some of it in another way. Here bytes mean what they mean to Java.
"""

import io
import json
import math
import sys
import time
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import fastavro
from fastavro._read_py import read_data
from fastavro.io.binary_decoder import BinaryDecoder

from infrastructure.registry.nesting import MOST_LEVELS, SchemaTooLarge, most_bytes

if TYPE_CHECKING:  # slow to import, and many topics hold no Avro
    from infrastructure.registry.client import SchemaRegistry

_PREFIX = Struct(">bI")
"""A zero byte and the schema's id."""
BROKEN = "broken, or not what its schema says"
AGAIN_SECONDS = 10
"""The interval at which the registry is asked again for a schema that it did not have."""
# It stays: the limit is that of all threads, of which several read values at once.
sys.setrecursionlimit(max(sys.getrecursionlimit(), 12 * MOST_LEVELS))


class Read(NamedTuple):
    """A decoded value, in fastavro's types, and the number of bytes after it."""

    data: Any
    bytes_left: int


class _Schema(NamedTuple):
    """parsed, named: the schema and its named types, as fastavro parses them. most_bytes: the longest value that is read; None: no limit."""

    parsed: Any
    named: dict[str, Any]
    most_bytes: int | None


def schema_id_of(value: bytes) -> int | None:
    """The id of the schema in the value's prefix. None without such a prefix: the value is not in the wire format."""
    return int(_PREFIX.unpack_from(value)[1]) if value[:1] == b"\0" and len(value) >= _PREFIX.size else None


def payload_of(value: bytes) -> bytes:
    """The bytes after the prefix."""
    return value[_PREFIX.size :]


def _unchanged(schema: Any) -> Any:  # noqa: ANN401 - a schema in JSON
    return schema


class AvroReader:
    """Reads values. Fetches each schema from the registry once. Its methods raise RegistryUnavailable when the registry does not answer.

    read_by: returns the schema with which to read the values of a writer's schema, or raises ValueError if it cannot be used.
    """

    def __init__(self, registry: "SchemaRegistry", read_by: Callable[[Any], Any] = _unchanged) -> None:
        self._registry, self._read_by = registry, read_by
        self._texts: dict[int, tuple[str | None, float]] = {}
        """The answers of the registry, and their times, by schema id."""
        self._schemas: dict[int, _Schema] = {}

    def schema(self, schema_id: int) -> str:
        """The schema in JSON. Raises ValueError if the registry does not have it, or if it is no Avro schema."""
        text, asked = self._texts.get(schema_id, (None, -math.inf))
        if text is None and time.monotonic() >= asked + AGAIN_SECONDS:
            text = self._registry.schema(schema_id) if schema_id < 2**31 else None
            self._texts[schema_id] = text, time.monotonic()
        if text is None:
            msg = f"the registry has no Avro schema of id {schema_id}"
            raise ValueError(msg)
        return text

    def read(self, value: bytes) -> Read:
        """Decodes the value. Raises ValueError with the reason if it cannot be read."""
        if not value:
            msg = "empty"
            raise ValueError(msg)
        if (schema_id := schema_id_of(value)) is None:
            msg = "not in the Confluent wire format"
            raise ValueError(msg)
        schema = self._schema(schema_id)
        if schema.most_bytes is not None and len(value) > schema.most_bytes:  # fastavro's stack would end, and the process with it
            msg = (
                f"longer than {schema.most_bytes:,} bytes, so that it may nest too deep: the schema of id {schema_id} contains its own type"
            )
            raise ValueError(msg)
        if (result := _read(value, schema)) is not None:
            return result
        is_text_broken = _read(value, schema, handle_unicode_errors="replace") is not None
        msg = f"{'a text in it is not UTF-8' if is_text_broken else BROKEN}, id {schema_id}"
        raise ValueError(msg)

    def _schema(self, schema_id: int) -> _Schema:
        if schema_id not in self._schemas:
            text = self.schema(schema_id)
            try:
                limit = most_bytes(text)
                schema = json.loads(text)
                fastavro.parse_schema(schema)
            except Exception as error:  # fastavro raises many types
                is_too_large = isinstance(error, SchemaTooLarge)
                why = error if is_too_large else f"it is not valid, or refers to other schemas ({type(error).__name__}: {error!s:.200})"
                msg = f"the schema of id {schema_id} cannot be used: {why}"
                raise ValueError(msg) from error
            named: dict[str, Any] = {}
            try:
                self._schemas[schema_id] = _Schema(fastavro.parse_schema(self._read_by(schema), named), named, limit)
            except ValueError as error:
                msg = f"the schema of id {schema_id} cannot be used: {error}"
                raise ValueError(msg) from error
        return self._schemas[schema_id]


class _Decoder(BinaryDecoder):
    """fastavro's decoder, except that it refuses what Java refuses, and reads the rest as Java does."""

    def read_boolean(self) -> bool:
        return bool(self.fo.read(1)[0] == 1)

    def read_int(self) -> int:
        return self._zigzag_number(bits=32)

    def read_long(self) -> int:
        return self._zigzag_number(bits=64)

    def read_index(self) -> int:
        if (index := self._zigzag_number(bits=32)) < 0:
            msg = f"no branch of a union, and no symbol of an enum, has the index {index}"
            raise ValueError(msg)
        return index

    read_enum = read_index

    def _zigzag_number(self, bits: int) -> int:
        """Decodes a number in zigzag form, with seven bits in each byte. Ignores bits beyond those of its type."""
        byte = self.fo.read(1)[0]
        if byte <= 0x7F:  # noqa: PLR2004 - the eighth bit says that more follow
            return (byte >> 1) ^ -(byte & 1)
        number = byte & 0x7F
        for shift in range(7, bits, 7):
            byte = self.fo.read(1)[0]
            number |= (byte & 0x7F) << shift
            if byte <= 0x7F:  # noqa: PLR2004
                number &= (1 << bits) - 1
                return (number >> 1) ^ -(number & 1)
        msg = f"a number of more than {bits} bits"
        raise ValueError(msg)


def _read(value: bytes, schema: _Schema, **options: Any) -> Read | None:  # noqa: ANN401 - fastavro's
    decoder, named = _Decoder(io.BytesIO(payload_of(value))), {"writer": schema.named, "reader": {}}  # type: ignore[no-untyped-call]
    try:
        return Read(read_data(decoder, schema.parsed, named, None, options), len(decoder.fo.read()))  # type: ignore[no-untyped-call]
    except Exception:  # a broken value raises many types
        return None
