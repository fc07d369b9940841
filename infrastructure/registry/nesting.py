"""How deep a value of an Avro schema may nest. Readers of Avro use one level of their stack for each."""

import json
from collections.abc import Iterator
from typing import Any

from fastavro.schema import expand_schema

Schema = Any
"""A parsed JSON schema: a name, a list (a union), or an object."""

PRIMITIVE = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
MOST_LEVELS = 500


def most_bytes(text: str) -> int | None:
    """The maximum length of a value that nests at most MOST_LEVELS deep. None for a schema that does not contain its own type.

    Java's Avro skips what a reader does not want level by level on its stack: a deeper value would end the JVM.
    """
    schema: Schema = expand_schema(json.loads(text))
    references = _references(schema)
    least = [_least_bytes(record) for record in _records(schema) if record["name"] in references]
    return MOST_LEVELS * min(least) if least else None


def _records(schema: Schema) -> Iterator[Schema]:
    for branch in branches_of(schema):
        if isinstance(branch, dict):
            if is_record(branch):
                yield branch
            for inner in parts_of(branch):
                yield from _records(inner)


def _references(schema: Schema) -> set[str]:
    """The names in an expanded schema by which types contain themselves."""
    names = {branch for branch in branches_of(schema) if isinstance(branch, str)} - PRIMITIVE
    return names.union(*(_references(inner) for branch in branches_of(schema) if isinstance(branch, dict) for inner in parts_of(branch)))


def _least_bytes(schema: Schema) -> int:
    """The least number of bytes of a value, without what a reference by name would add."""
    if isinstance(schema, list):
        return 1 + min(map(_least_bytes, schema), default=0)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return sum(_least_bytes(field["type"]) for field in schema["fields"])
    return (
        schema["size"]
        if kind == "fixed"
        else {"null": 0, "float": 4, "double": 8}.get(kind, int(kind in {*PRIMITIVE, "enum", "array", "map"}))
    )


def parts_of(schema: dict[str, Any]) -> list[Schema]:
    """The types in a record, an array or a map."""
    return [*(field["type"] for field in schema.get("fields", [])), *(schema[name] for name in ("items", "values") if name in schema)]


def branches_of(schema: Schema) -> list[Schema]:
    """The types of a union, or the one type."""
    return schema if isinstance(schema, list) else [schema]


def is_record(schema: Schema) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"
