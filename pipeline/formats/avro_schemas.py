"""The schema that values are read with, made of all those that they were written with. Pure: schemas as JSON in, JSON out."""

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from fastavro.schema import SchemaParseException, expand_schema

Schema = Any
"""A schema as JSON gives it: a name, a list (a union), or an object."""

_WIDER = ("int", "long", "float", "double")
"""Each of these can hold what was written as one before it, by Avro's own rules."""


def reader_schema(versions: Sequence[str], own: str) -> str:
    """A record that every version can be read as, without losing a field of any.

    versions: the schemas that values may be written with, oldest first; one that is no record, or cannot be understood by itself, adds
    nothing. own: the schema that the reader's code was written for; it decides what its fields look like, but for numbers that have
    grown wider. Fields that it lacks look as in the newest version that has them. Every field may be null, and is null where a writer
    has neither it nor a default.
    """
    newest_first = filter(None, map(_record, reversed(versions)))
    merged = reduce(_merged, newest_first, _record(own))
    return json.dumps(_defined_once(_optional_fields(merged), set()))


def with_fields(schema: str, fields: Iterable[str]) -> str:
    """The record `schema` with no other fields than those, so that nothing else is read; a field that it lacks stays away."""
    record: Schema = expand_schema(json.loads(schema))
    names = set(fields)
    kept = [field for field in record["fields"] if field["name"] in names]
    return json.dumps(_defined_once({**record, "fields": kept}, set()))


def with_marker(schema: str, name: str) -> str:
    """The record `schema` with a field that no writer has, and that is true: in a row that could not be read it is null."""
    record = json.loads(schema)
    return json.dumps({**record, "fields": [*record["fields"], {"name": name, "type": "boolean", "default": True}]})


def _record(text: str) -> Schema | None:
    """The schema with each type written out wherever it is named; None when it is no record, or names what it does not define."""
    try:
        schema = expand_schema(json.loads(text))
    except (ValueError, SchemaParseException):
        return None
    return schema if _is_record(schema) else None


def _is_record(schema: Schema) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"


def _merged(one: Schema, other: Schema) -> Schema:
    """`one`, with the fields that only `other` has, at every level, and the wider of two number types."""
    if isinstance(one, list):
        return [_merged(branch, other) for branch in one]
    if one in _WIDER:
        return max([one, *(branch for branch in _branches(other) if branch in _WIDER)], key=_WIDER.index)
    record = next(filter(_is_record, _branches(other)), None)
    if record is None or not _is_record(one):
        return one
    others = {field["name"]: field for field in record["fields"]}
    fields = [
        {**field, "type": _merged(field["type"], others.pop(field["name"])["type"])} if field["name"] in others else field
        for field in one["fields"]
    ]
    return {**one, "fields": [*fields, *others.values()]}


def _optional_fields(schema: Schema) -> Schema:
    """`schema` where every field of a record, at every level, may be null and has a default: null if it had none."""
    if isinstance(schema, list):
        return [_optional_fields(one) for one in schema]
    if not _is_record(schema):
        return schema
    return {**schema, "fields": [_optional(field) for field in schema["fields"]]}


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    branches = [_optional_fields(branch) for branch in _branches(field["type"]) if branch != "null"]
    # A default is of the union's first branch.
    if field.get("default") is None:
        return {**field, "type": ["null", *branches], "default": None}
    return {**field, "type": [*branches, "null"]}


def _defined_once(schema: Schema, defined: set[str]) -> Schema:
    """`schema` with each named type defined where it stands first, and named afterwards, as Avro wants it."""
    if isinstance(schema, list):
        return [_defined_once(one, defined) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "name" in schema:
        if schema["name"] in defined:
            return schema["name"]
        defined.add(schema["name"])
    plain = {name: value for name, value in schema.items() if not name.startswith("__")}
    nested = {name: _defined_once(plain[name], defined) for name in ("type", "items", "values") if isinstance(plain.get(name), dict | list)}
    if "fields" in plain:
        nested["fields"] = [{**field, "type": _defined_once(field["type"], defined)} for field in plain["fields"]]
    return {**plain, **nested}


def _branches(schema: Schema) -> list[Schema]:
    return schema if isinstance(schema, list) else [schema]
