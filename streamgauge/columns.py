"""The columns of tables whose rows a topic declares, with Arrow's types."""

from datetime import datetime
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from infrastructure.rows import Fields

_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64(), datetime: pa.timestamp("us", tz="UTC")}


def schema_of(fields: type[Fields]) -> pa.Schema:
    """The columns of a table whose rows have these fields."""
    return pa.schema(list(_struct(fields)))


def _struct(fields: type[Fields]) -> pa.StructType:
    return pa.struct([pa.field(name, _type(kind), nullable=_is_optional(kind)) for name, kind in get_type_hints(fields).items()])


def _is_optional(kind: object) -> bool:
    return NoneType in get_args(kind)


def _type(kind: object) -> pa.DataType:
    """The Arrow type of a field of a declaration."""
    if isinstance(kind, type) and issubclass(kind, Fields):
        return _struct(kind)
    match get_origin(kind):
        case None:
            return _TYPES[kind]  # type: ignore[index] # another type is a KeyError that names it
        case origin if origin is Literal:
            return pa.string()
        case origin if origin in {Union, UnionType}:
            return _type(next(member for member in get_args(kind) if member is not NoneType))
        case origin if origin is dict:
            return pa.map_(*map(_type, get_args(kind)))
        case _:
            return pa.list_(_type(get_args(kind)[0]))
