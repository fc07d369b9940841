"""Merges the writer schemas of a subject into one reader schema. Pure: JSON schemas in, JSON schemas out."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from infrastructure.registry.nesting import PRIMITIVE, SchemaTooLarge, branches_of, expanded, is_record, parts_of

Schema = Any
"""A parsed JSON schema: a name, a list (a union), or an object."""

_WIDER = ("int", "long", "float", "double")
"""In Avro, each type can read values written as an earlier one."""
_TIMES = {f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros", "nanos")}
_LOGICAL = {"date", "time-millis", "time-micros", "decimal", "duration", *_TIMES}
"""The logical types of numbers and bytes. Avro ignores others, also those that are no text."""
_NEW = {"time-millis", "time-micros", *(f"{local}timestamp-nanos" for local in ("", "local-"))}
"""Logical types for which Spark has a type since 4.2, and Delta none: such a field is a number, as before."""
_LEFT_OUT = {"avro.java.string", "aliases"}
"""Properties of the writers that a reader of all of them must not have. By the first, Java replaces bytes that are not UTF-8 as it reads.
An alias would rename that field of every other writer, whose values a query would then miss."""


class UnusableSchemaError(ValueError):
    """A schema that no reader can be made of. The message says why."""


def reader_schema(versions: Sequence[str], project_schema: str) -> str:
    """A record schema that reads values of every version without losing a field.

    versions: the writer schemas, oldest first.
    project_schema: the schema the reader's code was written for. It decides the types of its fields, except that numbers widen as in `versions`. Other
    fields have the type of the newest version that contains them. Those that no column can hold, see `_tabular`, are left out.
    Every field is nullable, and null where the writer has neither the field nor a default.
    Raises UnusableSchemaError for a version that is not a record, not self-contained, too large, or that the reader would misread.
    """
    records = [_record(version) for version in versions]
    reader = _optional_fields(reduce(_merged, reversed(records), _record(project_schema)))
    for problem in (*_case_clashes(reader), *(problem for record in records for problem in _misread(reader, record))):
        raise UnusableSchemaError(problem)
    return json.dumps(without_new_types(_defined_once(reader, set())))


def without_new_types(schema: Schema) -> Schema:
    """The schema without the logical types for which Delta has no type."""
    if isinstance(schema, list):
        return [without_new_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without_new_types(part) for name, part in schema.items() if name != "logicalType" or str(part) not in _NEW}


def with_marker(schema: str, name: str) -> str:
    """The record `schema` plus a boolean field that no writer has. It defaults to true, and is null in a row that could not be decoded.

    Raises UnusableSchemaError if the name is taken.
    """
    record = json.loads(schema)
    if name.lower() in (field["name"].lower() for field in record["fields"]):
        msg = f"it has a field {name}, whose name is reserved"
        raise UnusableSchemaError(msg)
    return json.dumps({**record, "fields": [*record["fields"], {"name": name, "type": "boolean", "default": True}]})


def _record(text: str) -> Schema:
    """The schema with all type names expanded, reduced to what columns can hold."""
    try:
        schema = expanded(json.loads(text))
    except SchemaTooLarge as error:
        raise UnusableSchemaError(str(error)) from error
    except Exception as error:  # fastavro raises many types
        msg = f"it is not valid, or refers to other schemas ({type(error).__name__}: {error!s:.200})"
        raise UnusableSchemaError(msg) from error
    if not is_record(schema):
        msg = "it is not a record"
        raise UnusableSchemaError(msg)
    fields = [{**field, "type": kind} for field in schema["fields"] if (kind := _tabular(field["type"]))]
    return {**schema, "fields": fields}


def _tabular(schema: Schema) -> Schema | None:
    """`schema` without the fields that no column can hold: those that contain their own type, or nothing but null. None if nothing is left."""
    if isinstance(schema, list):
        branches = [branch if branch == "null" else _tabular(branch) for branch in schema]
        return None if None in branches or set(map(str, branches)) <= {"null"} else branches
    if isinstance(schema, str):  # expanded, so another name is that of an enclosing type
        return schema if schema in PRIMITIVE - {"null"} else None
    if is_record(schema):
        fields = [{**field, "type": kind} for field in schema["fields"] if (kind := _tabular(field["type"]))]
        return {**schema, "fields": fields} if fields else None
    inner = {name: _tabular(schema[name]) for name in ("items", "values") if name in schema}
    return None if None in inner.values() or schema["type"] == "null" else {**schema, **inner}


def _case_clashes(schema: Schema) -> Iterator[str]:
    """Says which fields of a record differ by case only, which Spark's columns cannot."""
    for branch in branches_of(schema):
        if not isinstance(branch, dict):
            continue
        fields = branch.get("fields", [])
        counts = Counter(field["name"].lower() for field in fields)
        for name in (name for name, count in counts.items() if count > 1):
            yield f"the names of its fields {' and '.join(field['name'] for field in fields if field['name'].lower() == name)} differ by case only"
        for inner in parts_of(branch):
            yield from _case_clashes(inner)


def _misread(reader: Schema, writer: Schema, name: str = "") -> Iterator[str]:
    """Says which numbers and bytes mean something else to the writer, such as days instead of seconds: Avro itself reads them all the same."""
    meant, written = _meanings(reader), _meanings(writer)
    if meant and not written <= meant:
        yield f"the logical type of its field {name} is {_listed(written)}; expected {_listed(meant)}"
    for written_type in filter(is_record, branches_of(writer)):
        for read_type in filter(is_record, branches_of(reader)):
            types = {field["name"]: field["type"] for field in read_type["fields"]}
            for field in written_type["fields"]:
                if field["name"] in types:
                    yield from _misread(types[field["name"]], field["type"], f"{name}.{field['name']}".removeprefix("."))
    for inner in ("items", "values"):
        for written_type in branches_of(writer):
            for read_type in branches_of(reader):
                if isinstance(written_type, dict) and isinstance(read_type, dict) and inner in written_type and inner in read_type:
                    yield from _misread(read_type[inner], written_type[inner], name)


def _meanings(schema: Schema) -> set[tuple[Any, ...]]:
    """The logical types, with their parameters, of the branches that are numbers or bytes; an empty one stands for a plain branch."""
    kinds = [branch if isinstance(branch, dict) else {"type": branch} for branch in branches_of(schema)]
    return {
        (kind["logicalType"], *(kind[name] for name in ("precision", "scale") if name in kind))
        if str(kind.get("logicalType")) in _LOGICAL
        else ()
        for kind in kinds
        if kind["type"] in (*_WIDER, "bytes", "fixed")
    }


def _listed(meanings: set[tuple[Any, ...]]) -> str:
    return " or ".join(sorted(" ".join(map(str, meaning)) or "none" for meaning in meanings))


def _merged(base: Schema, other: Schema) -> Schema:
    """`base` plus the fields and symbols that only `other` has, at every level, with the wider of two number types."""
    if isinstance(base, list):
        return [_merged(branch, other) for branch in base]
    if _is_enum(base):
        symbols = (symbol for branch in branches_of(other) if _is_enum(branch) for symbol in branch["symbols"])
        return {**base, "symbols": list(dict.fromkeys([*base["symbols"], *symbols]))}
    if base in _WIDER:
        return max([base, *(branch for branch in branches_of(other) if branch in _WIDER)], key=_WIDER.index)
    record = next(filter(is_record, branches_of(other)), None)
    if record is None or not is_record(base):
        return base
    remaining = {field["name"]: field for field in record["fields"]}
    fields = [
        {**field, "type": _merged(field["type"], remaining.pop(field["name"])["type"])} if field["name"] in remaining else field
        for field in base["fields"]
    ]
    return {**base, "fields": [*fields, *remaining.values()]}


def _is_enum(schema: Schema) -> bool:
    return isinstance(schema, dict) and schema["type"] == "enum"


def _optional_fields(schema: Schema) -> Schema:
    """`schema` with every record field, at every level, nullable and with a default: its own, or else null."""
    if isinstance(schema, list):
        return [_optional_fields(branch) for branch in schema]
    if not is_record(schema):
        return schema
    return {**schema, "fields": [_optional(field) for field in schema["fields"]]}


def _optional(field: dict[str, Any]) -> dict[str, Any]:
    branches = [_optional_fields(branch) for branch in branches_of(field["type"]) if branch != "null"]
    # Avro requires a default to match the first branch of a union.
    if field.get("default") is None:
        return {**field, "type": ["null", *branches], "default": None}
    return {**field, "type": [*branches, "null"]}


def _defined_once(schema: Schema, defined: set[str]) -> Schema:
    """`schema` with each named type defined at its first use and referred to by name afterwards, as Avro requires."""
    if isinstance(schema, list):
        return [_defined_once(branch, defined) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    if "name" in schema:
        if schema["name"] in defined:
            return schema["name"]
        defined.add(schema["name"])
    # Not the default of an enum either: Avro would take it for symbols that only another writer has.
    plain = {name: value for name, value in schema.items() if not name.startswith("__") and name not in {*_LEFT_OUT, "default"}}
    nested = {name: _defined_once(plain[name], defined) for name in ("type", "items", "values") if isinstance(plain.get(name), dict | list)}
    if "fields" in plain:
        fields = [{name: value for name, value in field.items() if name not in _LEFT_OUT} for field in plain["fields"]]
        nested["fields"] = [{**field, "type": _defined_once(field["type"], defined)} for field in fields]
    return {**plain, **nested}
