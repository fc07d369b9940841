"""How large an Avro schema is, and how deep its values may nest. Readers of Avro use one level of their stack for each."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from fastavro.schema import expand_schema, parse_schema

Schema = Any
"""A parsed JSON schema: a name, a list (a union), or an object."""

PRIMITIVE = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
MOST_LEVELS = 500
MOST_TYPES, MOST_TYPE_LEVELS = 10_000, 50
"""The largest schema. Each type counts wherever it is used, because twenty short definitions can stand for a million types. Types may nest
so deep, because Spark plans nested columns by recursion."""


class SchemaTooLarge(ValueError):  # noqa: N818 - it names what is wrong
    """A schema that is too large for a reader, or that allows values that are. The message says why."""


def expanded(schema: Schema) -> Schema:
    """The schema with types in place of their names, except within themselves. Raises SchemaTooLarge, and what fastavro does for one that is not valid."""
    named: dict[str, Schema] = {}
    if len([*islice(_types(parse_schema(schema, named), named, frozenset()), MOST_TYPES + 1)]) > MOST_TYPES:
        msg = f"it has more than {MOST_TYPES:,} types, each counted wherever it is used"
        raise SchemaTooLarge(msg)
    result = expand_schema(schema)
    if any(kind["type"] == "array" and _is_without_bytes(kind["items"]) for kind in _complex(result)):
        msg = "it has an array whose items take no bytes, such as nulls, so that a short value may have more items than a reader can count"
        raise SchemaTooLarge(msg)
    return result


def _types(schema: Schema, named: Mapping[str, Schema], enclosing: frozenset[str], level: int = 1) -> Iterator[Schema]:
    """The types in a schema, each wherever it is used. enclosing: the names of those around it."""
    if level > MOST_TYPE_LEVELS:
        msg = f"its types are nested more than {MOST_TYPE_LEVELS} levels deep"
        raise SchemaTooLarge(msg)
    for branch in branches_of(schema):
        yield branch
        name = branch if isinstance(branch, str) else branch.get("name")
        definition = named.get(name, branch)
        if name not in enclosing and isinstance(definition, dict):
            for part in parts_of(definition):
                yield from _types(part, named, enclosing | {name} if name else enclosing, level + 1)


def most_bytes(text: str) -> int | None:
    """The maximum length of a value that nests at most MOST_LEVELS deep. None for a schema that does not contain its own type. Raises as `expanded`.

    Java's Avro skips what a reader does not want level by level on its stack: a deeper value would end the JVM.
    """
    schema = expanded(json.loads(text))
    references = _references(schema)
    least = [_least_bytes(record) for record in filter(is_record, _complex(schema)) if record["name"] in references]
    return MOST_LEVELS * min(least) if least else None


def _complex(schema: Schema) -> Iterator[Schema]:
    """The types in an expanded schema that are more than a name."""
    for branch in branches_of(schema):
        if isinstance(branch, dict):
            yield branch
            for inner in parts_of(branch):
                yield from _complex(inner)


def _is_without_bytes(schema: Schema) -> bool:
    if not isinstance(schema, dict):
        return bool(schema == "null")
    has_no_fields = "fields" in schema and all(_is_without_bytes(field["type"]) for field in schema["fields"])
    return has_no_fields or schema["type"] == "null" or (schema["type"] == "fixed" and schema["size"] == 0)


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
