"""Schemas of Avro records that others have registered: which of them queries can use (docs/wikimedia.md), and how their values are read."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import count

from fastavro.read import LOGICAL_READERS
from fastavro.schema import expand_schema

from infrastructure.registry.nesting import PRIMITIVE, Schema, branches_of, is_record, parts_of

_READ_AS = {"string": {"string", "bytes"}, "long": {"int", "long", "float", "double"}, "boolean": {"boolean"}, "record": {"record"}}
"""The types of writers that the project reads as its own."""
_NUMBERS = {"int", "long", "float", "double", "bytes", "fixed"}
_MILLIS = {"timestamp-millis", "local-timestamp-millis"}
_LOGICAL = {
    *("date", "time-millis", "time-micros", "duration", "decimal", "timestamp-micros", "local-timestamp-micros"),
    *("timestamp-nanos", "local-timestamp-nanos", *_MILLIS),
}
_MOST_DIGITS = 38
_MARKER = "_is_read"
"""The queries have a column of this name."""
_NAME = re.compile(r"[^\W\d]\w*")


def read_by(schema: Schema, reader_schema: Schema) -> Schema:
    """The schema by which values are read that were written by a valid `schema`. reader_schema: the project's.

    Numbers are as they are written, times too, except for decimals, and milliseconds, which become microseconds. A value of a type that the
    project does not read as its own cannot be read. Raises ValueError with the reason why queries cannot use the schema.
    """
    expanded, reader_schema = expand_schema(schema), expand_schema(reader_schema)
    if not is_record(expanded):
        msg = "it is not a record"
        raise ValueError(msg)
    for problem in _problems(expanded, reader_schema, (_MARKER,)):
        raise ValueError(problem)
    return _as_read(expanded, reader_schema, {}, count())


def _problems(schema: Schema, reader_schema: Schema | None, others: tuple[str, ...] = ()) -> Iterator[str]:
    """Why queries cannot use a type. reader_schema: the project's type for the same. others: names of fields that are taken."""
    for kind in (kind for kind in branches_of(schema) if isinstance(kind, dict)):
        if kind.get("logicalType") == "decimal" and kind["type"] in {"bytes", "fixed"} and kind.get("precision", 0) > _MOST_DIGITS:
            yield f"it has a decimal of {kind['precision']} digits; at most {_MOST_DIGITS} can be kept"
        if _is(reader_schema, "long") and kind["type"] in _NUMBERS and str(kind.get("logicalType")) in _LOGICAL:
            yield f"a number of the project's is a {kind['logicalType']} in it"
        if not is_record(kind):
            yield from (problem for part in parts_of(kind) for problem in _problems(part, None))
            continue
        reader_fields, fields = _fields(reader_schema), [field for field in kind["fields"] if _is_column(field["type"])]
        names = [field["name"] for field in fields]
        names += [*others, *(reader_fields.keys() - names)]
        if twins := [name for name, number in Counter(map(str.lower, names)).items() if number > 1]:
            yield f"it has several fields whose names are {twins[0]} in lower case, of which queries have one"
        if bad := [name for name in _names(kind) if not _NAME.fullmatch(name)]:
            yield f"{bad[0]} is not a name"
        for field in fields:
            yield from _problems(field["type"], reader_fields.get(field["name"]))


def _is(reader_schema: Schema | None, name: str) -> bool:
    return reader_schema is not None and name in {kind["type"] if isinstance(kind, dict) else kind for kind in branches_of(reader_schema)}


def _fields(reader_schema: Schema | None) -> Mapping[str, Schema]:
    """The types of the fields of the project's record, by name."""
    record: Schema = next((kind for kind in branches_of(reader_schema) if is_record(kind)), {"fields": []})
    return {field["name"]: field["type"] for field in record["fields"]}


def _names(record: Schema) -> list[str]:
    """The names of a record and of its fields. fastavro has put a namespace before the first."""
    return [*record["name"].split("."), *(field["name"] for field in record["fields"])]


def _is_column(schema: Schema) -> bool:
    """Whether a column can hold the type: not one that contains itself, or nothing but null. Queries leave such fields out."""
    kinds = [kind for kind in branches_of(schema) if kind != "null"]
    return bool(kinds) and all(map(_is_column_of, kinds))


def _is_column_of(kind: Schema) -> bool:
    if isinstance(kind, str):
        return kind in PRIMITIVE
    if is_record(kind):
        return any(_is_column(field["type"]) for field in kind["fields"])
    return kind["type"] != "null" and all(map(_is_column, parts_of(kind)))


def _as_read(schema: Schema, reader_schema: Schema | None, enclosing: Mapping[str, str], numbers: Iterator[int]) -> Schema:
    """See read_by. enclosing: the new names of the types around. numbers: for the next ones, as each type has a name once in a schema."""
    if isinstance(schema, list):
        return [_as_read(kind, reader_schema, enclosing, numbers) for kind in schema]
    if isinstance(schema, str) and schema not in PRIMITIVE:
        return enclosing[schema]
    old: Schema = {"type": schema} if isinstance(schema, str) else schema
    new: Schema = {name: old[name] for name in ("type", "size", "symbols") if name in old}
    if "name" in old:
        new["name"] = f"type_{next(numbers)}"
        enclosing = {**enclosing, old["name"]: new["name"]}
    for name in ("items", "values"):
        if name in old:
            new[name] = _as_read(old[name], None, enclosing, numbers)
    if "fields" in old:
        reader_fields = _fields(reader_schema)
        new["fields"] = [
            {"name": field["name"], "type": _as_read(field["type"], reader_fields.get(field["name"]), enclosing, numbers)}
            for field in old["fields"]
        ]
    if (
        reader_schema is not None
        and old["type"] != "null"
        and not any(_is(reader_schema, name) and old["type"] in kinds for name, kinds in _READ_AS.items())
    ):
        return {**new, "logicalType": "unreadable"}
    if _is(reader_schema, "string"):
        return {"type": "string" if old["type"] == "bytes" else old["type"]}
    if old.get("logicalType") == "decimal" and old.get("precision"):
        return {**new, "logicalType": "exact-decimal", "digits": old["precision"], "places": old.get("scale", 0)}
    return {**new, "logicalType": "exact-millis"} if str(old.get("logicalType")) in _MILLIS else new


def _decimal(value: bytes, schema: Schema, _: Schema) -> Decimal:
    number = Decimal(int.from_bytes(value, "big", signed=True))
    if not value or len(number.as_tuple().digits) > schema["digits"]:
        msg = "no decimal, or too many digits"
        raise ValueError(msg)
    sign, digits, _exponent = number.as_tuple()
    return Decimal((sign, digits, -schema["places"]))


def _micros(value: int, *_: Schema) -> int:
    if not -(2**63) <= value * 1000 < 2**63:
        msg = "a time beyond 64 bits of microseconds"
        raise ValueError(msg)
    return value * 1000


def _unreadable(*_: object) -> None:
    msg = "a value of a type that is not read"
    raise ValueError(msg)


# Nobody else has logical types of these names.
LOGICAL_READERS |= {
    "bytes-exact-decimal": _decimal,
    "fixed-exact-decimal": _decimal,
    "long-exact-millis": _micros,
    **{f"{kind}-unreadable": _unreadable for kind in (*PRIMITIVE, "record", "enum", "fixed", "array", "map", "error")},
}
