"""Avro values as the audit reads them."""

from collections.abc import Mapping
from typing import Any

from contract.registry import avro_reader
from contract.registry.client import SchemaRegistry

Value = Mapping[str, Any]


class AvroReader:
    """Reads records. Asks the registry once for each schema that it has; raises RegistryUnavailable when it does not answer."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._reader = avro_reader.AvroReader(registry)

    def read(self, value: bytes | None) -> Value | str:
        """The record, or the reason why the value cannot be read."""
        try:
            found, _ = self._reader.read(value or b"")
        except ValueError as error:
            return str(error)
        if isinstance(found, dict):
            return found
        return f"the schema of id {avro_reader.schema_id_of(value or b'')} cannot be used: it is not a record"
