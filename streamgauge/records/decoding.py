"""Decodes keys and values of any topic: JSON, Avro in the Confluent wire format, other text, or bytes as hex."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from contract.json_text import loads
from infrastructure.errors import Unavailable
from infrastructure.output.row_formats import json_text
from infrastructure.registry.avro_reader import AvroReader, Read, payload_of, schema_id_of
from infrastructure.registry.server import RegistryServer
from infrastructure.text import escaped

RETRY_SECONDS = 10
"""After this time, a registry that did not answer is asked again."""
_LINE_BREAKS = str.maketrans("\t\n\r", "   ")
"""In JSON, line breaks and tabs are between tokens only."""


@dataclass(frozen=True)
class Decoded:
    """The content of a key or a value.

    form: "json" is an object or an array; None is null. text: on one line, safe to print; JSON if that is the form, or Avro.
    data: the parsed JSON, what fastavro reads, or the text itself. schema_id: of the wire format. note: why it is hex, or what else is odd.
    """

    form: Literal["json", "avro", "text", "hex"] | None
    text: str = ""
    data: Any = None
    schema_id: int | None = None
    note: str | None = None

    def has(self, text: str) -> bool:
        """Whether the content is `text`, or has a field that is."""
        return self.form is not None and (text == self.text or text in _leaves(self.data))


class Decoder:
    """Decodes bytes. Asks the registry once for each schema."""

    def __init__(self, registry: RegistryServer) -> None:
        self._registry = registry
        self._away: Unavailable | None = None
        self._ask_again_at = 0.0

    @cached_property
    def reader(self) -> AvroReader:
        from infrastructure.registry.client import SchemaRegistry  # slow to import, and many topics hold no Avro

        return AvroReader(SchemaRegistry(self._registry))

    def decoded(self, value: bytes | None) -> Decoded:
        """Decodes the bytes. Without the registry, Avro is shown as hex. Raises StreamgaugeError when the registry denies access."""
        if value is None or (schema_id := schema_id_of(value)) is None:
            return without_schema(value)
        return self._in_wire_format(value, schema_id)

    def knows(self, schema_id: int) -> bool:
        """Whether the registry has this Avro schema. Raises RegistryUnavailable when it does not answer."""
        try:
            self.reader.schema(schema_id)
        except ValueError:
            return False
        return True

    def _in_wire_format(self, value: bytes, schema_id: int) -> Decoded:
        try:
            data, bytes_left = self._read(value)
            text = escaped(_as_json(data))
        except (ValueError, Unavailable) as error:
            other = without_schema(payload_of(value))
            if other.form == "json":  # as serializers of JSON Schema write it
                return Decoded("json", other.text, other.data, schema_id)
            # A value that begins with a zero byte may be no Avro: Java's serializers of numbers write such.
            is_avro = isinstance(error, Unavailable)
            return Decoded("hex", value.hex(), schema_id=schema_id if is_avro else None, note=escaped(str(error)))
        note = f"{bytes_left:,} bytes follow that are not in schema {schema_id}" if bytes_left else None
        return Decoded("avro", text, data, schema_id, note)

    def _read(self, value: bytes) -> Read:
        if self._away is not None and time.monotonic() < self._ask_again_at:
            raise self._away
        try:
            return self.reader.read(value)
        except Unavailable as error:
            self._away, self._ask_again_at = error, time.monotonic() + RETRY_SECONDS
            raise


def without_schema(value: bytes | None) -> Decoded:
    """Decodes bytes that are not in the wire format."""
    if value is None:
        return Decoded(None)
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return Decoded("hex", value.hex())
    try:
        data = loads(value)
    except ValueError:
        data = None
    if isinstance(data, dict | list):
        return Decoded("json", escaped(text.translate(_LINE_BREAKS).strip()), data)
    return Decoded("text", escaped(text), text)


def _as_json(data: Any) -> str:  # noqa: ANN401 - what fastavro reads
    try:
        return json_text(data)
    except (RecursionError, TypeError) as error:  # orjson refuses more than 254 levels by a TypeError
        msg = "it is nested too deep"
        raise ValueError(msg) from error


def _leaves(data: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """The values in objects and arrays, as text."""
    pending = [data]
    while pending:
        match pending.pop():
            case dict() as value:
                pending += value.values()
            case list() as value:
                pending += value
            case str() as value:
                yield value
            case value if value is not None:
                yield json_text(value).strip('"')
