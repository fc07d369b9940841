"""The schema that values are read with, made of all those that they were written with. Pure: schemas as JSON in, JSON out."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from fastavro.schema import expand_schema

Schema = Any
"""A schema as JSON gives it: a name, a list (a union), or an object."""

_WIDER = ("int", "long", "float", "double")
"""Each of these can hold what was written as one before it, by Avro's own rules."""


def reader_schema(versions: Sequence[str], own: str) -> str:
    """A record that every version can be read as, without losing a field of any.

    versions: the schemas that values may be written with, oldest first; those that are no records are left out. own: the schema that
    the reader was made for. The newest version decides how a field looks; what it lacks comes from older ones and from `own`. Every
    field may be missing: it is null then, unless it has a default. Whether it may be missing from a row is for the row's reader to say.
    """
    records = [schema for schema in map(_expanded, (own, *versions)) if _is_record(schema)]
    merged = records[-1]
    for older in reversed(records[:-1]):
        merged = _merged(merged, older)
    return json.dumps(_defined_once(_optional_fields(merged), set()))


def with_fields(schema: str, fields: Iterable[str]) -> str:
    """The record `schema` with no other fields than those, so that nothing else is read; a field that it lacks stays away."""
    record, names = _expanded(schema), set(fields)
    kept = [field for field in record["fields"] if field["name"] in names]
    return json.dumps(_defined_once({**record, "fields": kept}, set()))


def with_marker(schema: str, name: str) -> str:
    """The record `schema` with a field that no writer has, and that is true: in a row that could not be read it is null."""
    record = json.loads(schema)
    return json.dumps({**record, "fields": [*record["fields"], {"name": name, "type": "boolean", "default": True}]})


def _expanded(text: str) -> Schema:
    return expand_schema(json.loads(text))


def _is_record(schema: Schema) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"


def _merged(newer: Schema, older: Schema) -> Schema:
    """`newer`, with the fields that only `older` has, at every level, and the wider of two number types."""
    if newer in _WIDER and older in _WIDER:
        return max(newer, older, key=_WIDER.index)
    if isinstance(newer, list):
        other = next((one for one in _branches(older) if _is_record(one)), None)
        return [_merged(one, other) if _is_record(one) and other else one for one in newer]
    if _is_record(newer):
        other = next((one for one in _branches(older) if _is_record(one)), {"fields": []})
        olders = {field["name"]: field for field in other["fields"]}
        fields = [
            {**field, "type": _merged(field["type"], olders[field["name"]]["type"])} if field["name"] in olders else field
            for field in newer["fields"]
        ]
        names = {field["name"] for field in fields}
        return {**newer, "fields": [*fields, *(field for name, field in olders.items() if name not in names)]}
    return newer


def _optional_fields(schema: Schema) -> Schema:
    """`schema` where every field of a record, at every level, has a default: null if it had none."""
    if isinstance(schema, list):
        return [_optional_fields(one) for one in schema]
    if not _is_record(schema):
        return schema
    return {**schema, "fields": [_optional(field) for field in schema["fields"]]}


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    field = {**field, "type": _optional_fields(field["type"])}
    if "default" in field:
        return field
    # A default is of the union's first branch.
    return {**field, "type": ["null", *(one for one in _branches(field["type"]) if one != "null")], "default": None}


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
