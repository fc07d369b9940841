"""Avro values in the Confluent wire format, each read by the schema that wrote it, with fastavro."""

import io
import json
from collections.abc import Mapping
from struct import Struct
from typing import Any

import fastavro

from contract.registry.client import SchemaRegistry

Value = Mapping[str, Any]
_PREFIX = Struct(">bI")


class AvroReader:
    """Reads values. Asks the registry once for each schema id; its methods raise RegistryUnavailable when it does not answer."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._schemas: dict[int, Any] = {}

    def read(self, value: bytes | None) -> Value | str:
        """The record, or the reason why the value cannot be read."""
        if not value:
            return "empty"
        if len(value) < _PREFIX.size or value[0] != 0:
            return "not in the Confluent wire format"
        _, schema_id = _PREFIX.unpack_from(value)
        if (schema := self._schema(schema_id)) is None:
            return f"the registry has no Avro schema of id {schema_id}"
        if (found := _decoded(value, schema)) is not None:
            return found
        is_text_broken = _decoded(value, schema, handle_unicode_errors="replace") is not None
        return f"{'a text in it is not UTF-8' if is_text_broken else 'broken, or not what its schema says'}, id {schema_id}"

    def _schema(self, schema_id: int) -> Any:  # noqa: ANN401 - fastavro's
        if schema_id not in self._schemas:
            text = self._registry.schema(schema_id) if schema_id < 2**31 else None
            self._schemas[schema_id] = None if text is None else fastavro.parse_schema(json.loads(text))
        return self._schemas[schema_id]


def _decoded(value: bytes, schema: Any, **options: Any) -> Value | None:  # noqa: ANN401 - fastavro's
    """The record; None if it cannot be read."""
    try:
        found = fastavro.schemaless_reader(io.BytesIO(value[_PREFIX.size :]), schema, None, **options)
    except Exception:  # a broken value raises many types
        return None
    return found if isinstance(found, dict) else None
