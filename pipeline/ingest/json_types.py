"""The column types of JSON fields: settled when a table begins, and kept or widened by what comes later. Pure.

What documents hold is told as Spark tells it of variants (`schema_of_variant_agg`): BIGINT, DECIMAL, DOUBLE, STRING, BOOLEAN, ARRAY, a
struct for an object, VOID for what is always null, VARIANT for what is now this and now that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.sql import types as T  # noqa: N812

from contract.errors import StreamgaugeError

_WHOLE = T.DecimalType(38, 0)
RESERVED = ("kafka_key", "kafka_partition", "kafka_offset", "kafka_timestamp")
"""Columns of the table besides the fields."""


class TypeChanged(StreamgaugeError):  # noqa: N818 - it says what is the case
    """Documents hold what the table's columns cannot take."""


class AmbiguousNames(StreamgaugeError):  # noqa: N818
    """Fields have names that columns cannot have side by side."""


@dataclass
class Notes:
    """What a person should know of columns. kept_as_text: by path, why a field is a column of JSON text. without_column: fields always null so far."""

    kept_as_text: dict[str, str] = field(default_factory=dict)
    without_column: list[str] = field(default_factory=list)


def settled(seen: T.StructType, notes: Notes) -> T.StructType:
    """The columns for documents of the type `seen`.

    Whole numbers are bigint, those beyond 64 bits decimal(38,0), others double. What is of mixed types, or an object or array without
    content, becomes a string that holds the JSON text: any later value fits into it. Raises AmbiguousNames.
    """
    _check_names(seen, "")
    return T.StructType(list(_settled_fields(seen, "", notes)))


def widened(columns: T.StructType, seen: T.StructType, notes: Notes) -> T.StructType:
    """`columns` with a column more for each new field of `seen`, at its end; the same object when there is none.

    Raises TypeChanged when values do not fit into a column, with the path and both types of each, and AmbiguousNames.
    """
    conflicts: list[str] = []
    wider = _widened_struct(columns, seen, "", notes, conflicts)
    if conflicts:
        msg = "; ".join(conflicts)
        raise TypeChanged(msg)
    if wider == columns:
        return columns
    _check_names(wider, "")
    return wider


def paths(struct: T.StructType, parent: str = "") -> Iterator[str]:
    """The path of every field, with dots for levels and [] for the elements of an array."""
    for one in struct:
        path, kind = _path(parent, one.name), one.dataType
        yield path
        while isinstance(kind, T.ArrayType):
            path, kind = f"{path}[]", kind.elementType
        if isinstance(kind, T.StructType):
            yield from paths(kind, path)


def _settled(seen: T.DataType, path: str, notes: Notes) -> T.DataType | None:
    """The column type; None for what is always null."""
    match seen:
        case T.NullType():
            return None
        case T.VariantType() | T.StructType(fields=[]):
            notes.kept_as_text[path] = "an object without fields" if isinstance(seen, T.StructType) else "mixed types"
            return T.StringType()
        case T.StructType():
            fields = list(_settled_fields(seen, path, notes))
            return T.StructType(fields) if fields else None
        case T.ArrayType(elementType=element):
            kind = _settled(element, f"{path}[]", notes)
            if kind is None:
                notes.kept_as_text[f"{path}[]"] = "an array without values"
            return T.ArrayType(kind or T.StringType())
        case T.DecimalType():
            return _WHOLE if seen.scale == 0 else T.DoubleType()
    return seen


def _settled_fields(seen: T.StructType, parent: str, notes: Notes) -> Iterator[T.StructField]:
    for one in seen:
        path = _path(parent, one.name)
        kind = _settled(one.dataType, path, notes)
        if kind is None:
            notes.without_column.append(path)
        else:
            yield T.StructField(one.name, kind)


def _widened(column: T.DataType, seen: T.DataType, path: str, notes: Notes, conflicts: list[str]) -> T.DataType:
    match column, seen:
        case (_, T.NullType()) | (T.StringType(), _):
            return column
        case T.StructType(), T.StructType():
            return _widened_struct(column, seen, path, notes, conflicts)
        case T.ArrayType(), T.ArrayType():
            return T.ArrayType(_widened(column.elementType, seen.elementType, f"{path}[]", notes, conflicts))
        case (T.DoubleType(), T.LongType() | T.DecimalType() | T.DoubleType()) | (T.DecimalType(), T.LongType()):
            return column
        case T.DecimalType(), T.DecimalType(scale=0):
            return column
    if column != seen:
        held = "values of mixed types" if isinstance(seen, T.VariantType) else seen.simpleString()
        conflicts.append(f"field {path} is {column.simpleString()} in the table and {held} in the topic")
    return column


def _widened_struct(column: T.StructType, seen: T.StructType, parent: str, notes: Notes, conflicts: list[str]) -> T.StructType:
    there = {one.name: one for one in seen}
    kept = [
        T.StructField(one.name, _widened(one.dataType, there[one.name].dataType, _path(parent, one.name), notes, conflicts))
        if one.name in there
        else one
        for one in column
    ]
    new = T.StructType([one for one in seen if one.name not in column.fieldNames()])
    return T.StructType([*kept, *_settled_fields(new, parent, notes)])


def _check_names(struct: T.StructType, parent: str) -> None:
    """Columns are told apart without regard to case, fields with."""
    by_name: dict[str, str] = {} if parent else {name: name for name in RESERVED}
    for one in struct:
        other = by_name.setdefault(one.name.lower(), one.name)
        if other is not one.name:
            found = "is a column of every table" if other in RESERVED and not parent else "is another field that differs in case only"
            msg = (
                f"field {_path(parent, one.name)} cannot be a column: {_path(parent, other)} {found}; rename it where the records are made"
            )
            raise AmbiguousNames(msg)
        kind, path = one.dataType, _path(parent, one.name)
        while isinstance(kind, T.ArrayType):
            kind, path = kind.elementType, f"{path}[]"
        if isinstance(kind, T.StructType):
            _check_names(kind, path)


def _path(parent: str, name: str) -> str:
    quoted = f"`{name}`" if not name.replace("_", "a").isalnum() else name
    return f"{parent}.{quoted}" if parent else quoted
