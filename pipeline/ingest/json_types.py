"""The column types of JSON fields: chosen when a table is created, and kept or widened later. Pure.

Input types are those of Spark's variants (`schema_of_variant_agg`): BIGINT, DECIMAL, DOUBLE, STRING, BOOLEAN, ARRAY, a struct for an
object, VOID for a field that is always null, VARIANT for a field of mixed types.
"""

from collections.abc import Iterator

from pyspark.sql import types as T  # noqa: N812

from contract.errors import StreamgaugeError

_WHOLE = T.DecimalType(38, 0)
ORIGIN = (
    T.StructType()
    .add("kafka_key", T.StringType())
    .add("kafka_partition", T.IntegerType())
    .add("kafka_offset", T.LongType())
    .add("kafka_timestamp", T.TimestampType())
)
"""The table's columns for Kafka metadata, in addition to the fields."""
RESERVED = tuple(ORIGIN.names)


class TypeChanged(StreamgaugeError):  # noqa: N818 - it says what is the case
    """Documents have values that do not fit the table's columns."""


class AmbiguousNames(StreamgaugeError):  # noqa: N818
    """Documents have field names that clash as column names."""


KeptAsText = dict[str, str]
"""By path, why a field is stored as JSON text."""


def widened(columns: T.StructType, seen: T.StructType, kept_as_text: KeptAsText) -> T.StructType:
    """`columns` with the new fields of `seen`, the type of documents, appended; the same object if there are none.

    Of new fields, whole numbers become bigint, or decimal(38,0) beyond 64 bits; other numbers become double. Mixed types and empty objects
    or arrays become a string with the JSON text, so that any later value fits; this is noted in `kept_as_text`.
    Raises TypeChanged when values do not fit a column, with each path and both types, and AmbiguousNames.
    """
    conflicts: list[str] = []
    wider = T.StructType(list(_fields(columns, seen, "", kept_as_text, conflicts)))
    if conflicts:
        msg = "; ".join(conflicts)
        raise TypeChanged(msg)
    if wider == columns:
        return columns
    _check_names(wider)
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


def _fields(
    columns: T.StructType, seen: T.StructType, parent: str, kept_as_text: KeptAsText, conflicts: list[str]
) -> Iterator[T.StructField]:
    known, there = ({one.name: one.dataType for one in struct} for struct in (columns, seen))
    for name in known | there:
        path = _path(parent, name)
        kind = _type(known.get(name), there.get(name, T.NullType()), path, kept_as_text, conflicts)
        if kind is not None:
            yield T.StructField(name, kind)


def _type(column: T.DataType | None, seen: T.DataType, path: str, kept_as_text: KeptAsText, conflicts: list[str]) -> T.DataType | None:
    """The type of a column, or of a new one if `column` is None. None for a new field that is always null."""
    match column, seen:
        case (
            (_, T.NullType())
            | (T.StringType(), _)
            | (T.DoubleType(), T.LongType() | T.DecimalType())
            | (T.DecimalType(), T.LongType() | T.DecimalType(scale=0))
        ):
            return column
        case None, T.VariantType() | T.StructType(fields=[]):
            kept_as_text[path] = "an object without fields" if isinstance(seen, T.StructType) else "mixed types"
            return T.StringType()
        case None | T.StructType(), T.StructType():
            fields = list(_fields(column or T.StructType(), seen, path, kept_as_text, conflicts))
            return T.StructType(fields) if fields else None
        case None | T.ArrayType(), T.ArrayType():
            element = _type(column and column.elementType, seen.elementType, f"{path}[]", kept_as_text, conflicts)
            if element is None:
                kept_as_text[f"{path}[]"] = "an array without values"
            return T.ArrayType(element or T.StringType())
        case None, T.DecimalType():
            return _WHOLE if seen.scale == 0 else T.DoubleType()
    if column is not None and column != seen:
        held = "values of mixed types" if isinstance(seen, T.VariantType) else seen.simpleString()
        conflicts.append(f"field {path} is {column.simpleString()} in the table and {held} in the topic")
    return seen if column is None else column


def _check_names(columns: T.StructType) -> None:
    """Raises AmbiguousNames: column names are case-insensitive, field names are case-sensitive."""
    taken = {name: f"{name} is a column of every table" for name in RESERVED}
    for path in paths(columns):
        if other := taken.get(path.lower()):
            msg = f"field {path} cannot be a column: {other}; rename it where the records are made"
            raise AmbiguousNames(msg)
        taken[path.lower()] = f"{path} is another field that differs in case only"


def _path(parent: str, name: str) -> str:
    quoted = f"`{name.replace('`', '``')}`" if not name.replace("_", "a").isalnum() else name
    return f"{parent}.{quoted}" if parent else quoted
