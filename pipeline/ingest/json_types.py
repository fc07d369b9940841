"""The column types of JSON fields: chosen when a table is created, and kept or widened later. Pure.

Input types are those of Spark's variants (`schema_of_variant_agg`): BIGINT, DECIMAL, DOUBLE, STRING, BOOLEAN, ARRAY, a struct for an
object, VOID for a field that is always null, VARIANT for a field of mixed types.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.sql import types as T  # noqa: N812

from contract.errors import StreamgaugeError

_WHOLE = T.DecimalType(38, 0)
RESERVED = ("kafka_key", "kafka_partition", "kafka_offset", "kafka_timestamp")
"""The table's columns for Kafka metadata, in addition to the fields."""


class TypeChanged(StreamgaugeError):  # noqa: N818 - it says what is the case
    """Documents have values that do not fit the table's columns."""


class AmbiguousNames(StreamgaugeError):  # noqa: N818
    """Documents have field names that clash as column names."""


@dataclass
class Notes:
    """Notes on columns.

    kept_as_text: by path, why a field is stored as JSON text.
    without_column: paths of fields that have always been null so far.
    """

    kept_as_text: dict[str, str] = field(default_factory=dict)
    without_column: list[str] = field(default_factory=list)


def settled(seen: T.StructType, notes: Notes) -> T.StructType:
    """The column types for documents of type `seen`.

    Whole numbers become bigint, or decimal(38,0) beyond 64 bits; other numbers become double. Mixed types and empty objects or arrays
    become a string with the JSON text, so that any later value fits. Raises AmbiguousNames.
    """
    _check_names(seen, "")
    return T.StructType(list(_settled_fields(seen, "", notes)))


def widened(columns: T.StructType, seen: T.StructType, notes: Notes) -> T.StructType:
    """`columns` with the new fields of `seen` appended; the same object if there are none.

    Raises TypeChanged when values do not fit a column, with each path and both types, and AmbiguousNames.
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
    """The path of every field, with dots between levels and [] for array elements."""
    for one in struct:
        path, kind = _path(parent, one.name), one.dataType
        yield path
        while isinstance(kind, T.ArrayType):
            path, kind = f"{path}[]", kind.elementType
        if isinstance(kind, T.StructType):
            yield from paths(kind, path)


def _settled(seen: T.DataType, path: str, notes: Notes) -> T.DataType | None:
    """The column type; None for a field that is always null."""
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
    """Raises AmbiguousNames: column names are case-insensitive, field names are case-sensitive."""
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
