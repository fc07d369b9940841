"""Merges the writer schemas of a subject into one reader schema. Pure: JSON schemas in, JSON schemas out."""

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from fastavro.schema import SchemaParseException, expand_schema

Schema = Any
"""A parsed JSON schema: a name, a list (a union), or an object."""

_WIDER = ("int", "long", "float", "double")
"""In Avro, each type can read values written as an earlier one."""


def reader_schema(versions: Sequence[str], own: str) -> str:
    """A record schema that reads values of every version without losing a field.

    versions: the writer schemas, oldest first. Schemas that are not records, or that are not self-contained, are ignored.
    own: the schema the reader's code was written for. It decides the types of its fields, except that numbers widen as in `versions`. Other
    fields have the type of the newest version that contains them.
    Every field is nullable, and null where the writer has neither the field nor a default.
    """
    newest_first = filter(None, map(_record, reversed(versions)))
    merged = reduce(_merged, newest_first, _record(own))
    return json.dumps(_defined_once(_optional_fields(merged), set()))


def with_fields(schema: str, fields: Iterable[str]) -> str:
    """The record `schema` reduced to `fields`, so that nothing else is decoded; unknown names are ignored."""
    record: Schema = expand_schema(json.loads(schema))
    names = set(fields)
    kept = [field for field in record["fields"] if field["name"] in names]
    return json.dumps(_defined_once({**record, "fields": kept}, set()))


def with_marker(schema: str, name: str) -> str:
    """The record `schema` plus a boolean field that no writer has. It defaults to true, and is null in a row that could not be decoded."""
    record = json.loads(schema)
    return json.dumps({**record, "fields": [*record["fields"], {"name": name, "type": "boolean", "default": True}]})


def _record(text: str) -> Schema | None:
    """The schema with all type names expanded; None if it is not a record or refers to an undefined type."""
    try:
        schema = expand_schema(json.loads(text))
    except (ValueError, SchemaParseException):
        return None
    return schema if _is_record(schema) else None


def _is_record(schema: Schema) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"


def _merged(one: Schema, other: Schema) -> Schema:
    """`one` plus the fields that only `other` has, at every level, with the wider of two number types."""
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
    """`schema` with every record field, at every level, nullable and with a default: its own, or else null."""
    if isinstance(schema, list):
        return [_optional_fields(one) for one in schema]
    if not _is_record(schema):
        return schema
    return {**schema, "fields": [_optional(field) for field in schema["fields"]]}


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    branches = [_optional_fields(branch) for branch in _branches(field["type"]) if branch != "null"]
    # Avro requires a default to match the first branch of a union.
    if field.get("default") is None:
        return {**field, "type": ["null", *branches], "default": None}
    return {**field, "type": [*branches, "null"]}


def _defined_once(schema: Schema, defined: set[str]) -> Schema:
    """`schema` with each named type defined at its first use and referred to by name afterwards, as Avro requires."""
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
