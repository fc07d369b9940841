"""Decodes the values of any topic: JSON, or Avro in the Confluent wire format."""

from contract.domains import DOMAINS
from contract.registry.server import RegistryServer
from contract.rows import Decode, decode_json
from contract.topics import Topic

AVRO = frozenset(report.topic.row for domain in DOMAINS for report in domain.reports.values() if report.is_avro)
"""The rows that are written as Avro."""


def value_decoder(topic: Topic, registry: RegistryServer, of_json: Decode = decode_json) -> Decode:
    """Decodes a value of `topic` to what JSON has. of_json: for topics that are JSON. Raises as `avro_rows` or `of_json`."""
    if topic.row not in AVRO:
        return of_json
    from contract.registry.client import SchemaRegistry, avro_rows

    return avro_rows(SchemaRegistry(registry))
