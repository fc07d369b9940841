"""Decodes the values of any topic: JSON, or Avro in the Confluent wire format."""

from datetime import UTC, datetime
from typing import Any

from contract.topics import Topic
from infrastructure.registry.server import RegistryServer
from infrastructure.rows import Decode, decode_json


def value_decoder(topic: Topic, registry: RegistryServer, of_json: Decode = decode_json) -> Decode:
    """A decoder of the topic's values to JSON's types: times of Avro become ISO 8601 text, UTC, with Z. of_json: decodes topics in JSON.

    It raises as AvroReader.read, or `of_json`.
    """
    if not topic.is_avro:
        return of_json
    from infrastructure.registry.avro_reader import AvroReader  # slow to import, as the next, and most topics hold no Avro
    from infrastructure.registry.client import SchemaRegistry

    reader = AvroReader(SchemaRegistry(registry))
    return lambda value: _in_json_types(reader.read(value).data)


def _in_json_types(value: Any) -> Any:  # noqa: ANN401 - any value of Avro
    if isinstance(value, dict):
        return {name: _in_json_types(field) for name, field in value.items()}
    if isinstance(value, list):
        return [_in_json_types(item) for item in value]
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else value
