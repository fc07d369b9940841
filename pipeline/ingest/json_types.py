"""The column types of JSON fields: chosen when a table is created, and kept or widened later. Pure.

Input types are those of Spark's variants (`schema_of_variant_agg`): BIGINT, DECIMAL, DOUBLE, STRING, BOOLEAN, ARRAY, a struct for an
object, VOID for a field that is always null, VARIANT for a field of mixed types.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from contract.json_text import without_case
from infrastructure.errors import StreamgaugeError

_WHOLE = T.DecimalType(38, 0)
_BIGINT_DIGITS = 20
"""The digits of the decimal that Spark takes as the common type of 1 and 2.0. A whole number with more was written without a fraction."""
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


class TooManyFields(StreamgaugeError):  # noqa: N818
    """Documents have more fields than a table can have columns."""


class AmbiguousNames(StreamgaugeError):  # noqa: N818
    """Documents have field names that clash as column names."""


KeptAsText = dict[str, str]
"""Why a field is stored as JSON text, by its path. NO_VALUE and NO_ELEMENT apply until the first value, which has a type."""
NO_VALUE, NO_ELEMENT, MIXED = "an object without fields", "an array without values", "mixed types"
WITHOUT_CORRUPT_RECORD = {"columnNameOfCorruptRecord": uuid.uuid4().hex}
"""Otherwise, from_json takes a field of the name _corrupt_record for the place of texts that it cannot read."""
_WIDER = {(T.LongType, T.DecimalType), (T.LongType, T.DoubleType), (T.DecimalType, T.DoubleType)}
MAX_NAMES, MAX_FIELDS, MAX_TYPED_LEVELS = 200, 1000, 20
"""The limits of names in an object with a column of its own, fields in a table at all levels, and levels of a column. Spark's plans grow with each."""


Resolve = Callable[[T.DataType, T.DataType, str], T.DataType]
"""The new type of a column, from its type, that of observed values which do not fit it, and a description of both."""


def as_text(column: T.DataType, observed: T.DataType, description: str) -> T.DataType:  # noqa: ARG001 - a Resolve
    """A Resolve: the JSON text, which fits all values."""
    return T.StringType()


def as_double_or_text(column: T.DataType, observed: T.DataType, description: str) -> T.DataType:
    """A Resolve: for numbers double, although it may round those that the table has."""
    are_numbers = isinstance(column, T.NumericType) and isinstance(observed, T.NumericType)
    return T.DoubleType() if are_numbers else as_text(column, observed, description)


def widened(
    columns: T.StructType,
    observed: T.StructType,
    kept_as_text: KeptAsText,
    unrounded: T.StructType | None = None,
    resolve: Resolve | None = None,
) -> T.StructType:
    """`columns` with the new fields of `observed`, the type of documents, appended; the same object if there are none.

    Whole numbers become bigint, or decimal(38,0) beyond 64 bits, which a bigint column becomes, too. Of new fields, numbers with a fraction, be it .0, become double. Mixed types, objects with more
    than MAX_NAMES names, and objects and arrays without values become a string with the JSON text; this is noted in `kept_as_text`. Of the
    last ones, the first value changes the type: its documents would have that type if all had come at once.
    unrounded: as `observed`, where numbers that a double rounds are strings; None if there are none.
    resolve: changes columns that values do not fit. Without it, raises TypeChanged, with each path and both types. Raises AmbiguousNames.
    """
    conflicts: list[str] = []

    def refuse(column: T.DataType, _: T.DataType, description: str) -> T.DataType:
        conflicts.append(description)
        return column

    exact = observed if unrounded is None else unrounded
    observed = cast("T.StructType", _with_leaves(_double_if_whole_by_chance, columns, observed, exact))
    if unrounded is not None:
        rounding = T.StructType(list(_fields(columns, observed, "", dict(kept_as_text), resolve or (lambda column, *_: column))))
        observed = cast("T.StructType", _with_leaves(_mixed_if_rounded, rounding, observed, unrounded))
    wider = T.StructType(list(_fields(columns, observed, "", kept_as_text, resolve or refuse)))
    if conflicts:
        msg = "; ".join(conflicts)
        raise TypeChanged(msg)
    if wider == columns:
        return columns
    _check_names(wider)
    return wider


def paths(struct: T.StructType, parent: str = "") -> Iterator[str]:
    """The path of every field, with dots between levels and [] for array elements."""
    for field in struct:
        path, kind = _path(parent, field.name), field.dataType
        yield path
        while isinstance(kind, T.ArrayType):
            path, kind = f"{path}[]", kind.elementType
        if isinstance(kind, T.StructType):
            yield from paths(kind, path)


def without_new_fields(wider: T.StructType, columns: T.StructType) -> T.StructType:
    """`columns`, of which `wider` are later ones, with the later types of all but text."""
    return T.StructType([T.StructField(field.name, _later_type(wider[field.name].dataType, field.dataType)) for field in columns])


def _later_type(wider: T.DataType, column: T.DataType) -> T.DataType:
    match wider, column:
        case T.StructType(), T.StructType():
            return without_new_fields(wider, column)
        case T.ArrayType(), T.ArrayType():
            return T.ArrayType(_later_type(wider.elementType, column.elementType))
    return column if isinstance(column, T.StringType) else wider


def with_doubles_of(wanted: T.DataType, has: T.DataType) -> T.DataType:
    """`has` with double for the other numbers that are double in `wanted`."""

    def leaf(other: T.DataType, kind: T.DataType, _: T.DataType) -> T.DataType:
        return other if isinstance(other, T.DoubleType) and isinstance(kind, T.NumericType) else kind

    return _with_leaves(leaf, wanted, has, has)


def is_retyped(has: T.DataType, wanted: T.DataType) -> bool:
    """Whether a column, at any level, is to get a wider type, or to become text, or no longer be text. Fields of one of them only do not count."""
    match has, wanted:
        case T.StructType(), T.StructType():
            return any(is_retyped(field.dataType, wanted[field.name].dataType) for field in has if field.name in wanted.names)
        case T.ArrayType(), T.ArrayType():
            return is_retyped(has.elementType, wanted.elementType)
    return isinstance(has, T.StringType) != isinstance(wanted, T.StringType) or (type(has), type(wanted)) in _WIDER


def retyped(value: Column, has: T.DataType, wanted: T.DataType) -> Column:
    """A column of type `has` converted to `wanted`: numbers to wider ones, any type to its JSON text, and JSON text to objects.

    Text that becomes a value of another type is null, as it had none yet. If it has one after all, because an older schema was restored, Spark fails.
    """
    if not is_retyped(has, wanted):
        return value
    match has, wanted:
        case T.StructType(), T.StructType():
            fields = (retyped(value.getField(field.name), field.dataType, wanted[field.name].dataType).alias(field.name) for field in has)
            return F.when(value.isNotNull(), F.struct(*fields))
        case T.ArrayType(), T.ArrayType():
            return F.transform(value, lambda element: retyped(element, has.elementType, wanted.elementType))
        case T.StructType() | T.ArrayType(), T.StringType():
            return F.to_json(value)
        case T.StringType(), T.StructType():
            return F.from_json(value, wanted, WITHOUT_CORRUPT_RECORD)
    if isinstance(has, T.StringType):
        value = F.lit(None) if isinstance(wanted, T.ArrayType) else F.when(~value.rlike(r"\A\s*[\[{]"), value)
    return value.cast(wanted)


def _fields(
    columns: T.StructType, observed: T.StructType, parent: str, kept_as_text: KeptAsText, resolve: Resolve, level: int = 1
) -> Iterator[T.StructField]:
    before, observed_types = ({field.name: field.dataType for field in struct} for struct in (columns, observed))
    for name in before | observed_types:
        path = _path(parent, name)
        kind = _type(before.get(name), observed_types.get(name, T.NullType()), path, kept_as_text, resolve, level)
        if kind is not None:
            yield T.StructField(name, kind)


def _type(
    column: T.DataType | None, observed: T.DataType, path: str, kept_as_text: KeptAsText, resolve: Resolve, level: int
) -> T.DataType | None:
    """The type of a column, or of a new one if `column` is None. None for a new field that is always null."""
    if _has_no_type_yet(observed, kept_as_text.get(path)):
        column = None
        del kept_as_text[path]
    match column, observed:
        case (
            (_, T.NullType())
            | (T.StringType(), _)
            | (T.DoubleType(), T.LongType() | T.DecimalType())
            | (T.DecimalType(), T.LongType() | T.DecimalType(scale=0))
        ):
            if kept_as_text.get(path) == NO_VALUE and not isinstance(observed, T.NullType):
                kept_as_text[path] = MIXED
            return column
        case None, T.VariantType() | T.StructType() | T.ArrayType() if isinstance(observed, T.VariantType) or level > MAX_TYPED_LEVELS:
            kept_as_text[path] = MIXED if isinstance(observed, T.VariantType) else f"more than {MAX_TYPED_LEVELS} levels"
            return T.StringType()
        case None | T.StructType(), T.StructType():
            return _object(column, observed, path, kept_as_text, resolve, level)
        case None | T.ArrayType(), T.ArrayType():
            element = _type(column and column.elementType, observed.elementType, f"{path}[]", kept_as_text, resolve, level + 1)
            if element is None:
                kept_as_text[f"{path}[]"] = NO_ELEMENT
            return T.ArrayType(element or T.StringType())
    return _leaf_type(column, observed, path, kept_as_text, resolve)


def _leaf_type(column: T.DataType | None, observed: T.DataType, path: str, kept_as_text: KeptAsText, resolve: Resolve) -> T.DataType:
    is_whole = isinstance(observed, T.DecimalType) and observed.scale == 0
    if is_whole and (column is None or isinstance(column, T.LongType)):
        return _WHOLE
    if column is None:
        return T.DoubleType() if isinstance(observed, T.DecimalType) else observed
    if column == observed:
        return column
    description = f"field {path} is {column.simpleString()} in the table and {_type_text(observed, column)} in the topic"
    return _resolved(column, observed, description, path, kept_as_text, resolve)


def _resolved(
    column: T.DataType, observed: T.DataType, description: str, path: str, kept_as_text: KeptAsText, resolve: Resolve
) -> T.DataType:
    kind = resolve(column, observed, description)
    if isinstance(kind, T.StringType):
        kept_as_text[path] = MIXED
    return kind


def _type_text(observed: T.DataType, column: T.DataType) -> str:
    if not isinstance(observed, T.VariantType):
        return observed.simpleString()
    return "values of mixed types" + (", or numbers that a double rounds," if isinstance(column, T.DoubleType) else "")


def _has_no_type_yet(observed: T.DataType, why_text: str | None) -> bool:
    is_first = why_text == NO_ELEMENT or (why_text == NO_VALUE and isinstance(observed, T.StructType))
    return is_first and not isinstance(observed, T.NullType)


def _object(
    column: T.StructType | None, observed: T.StructType, path: str, kept_as_text: KeptAsText, resolve: Resolve, level: int
) -> T.DataType:
    within = {} if column is None else dict(kept_as_text)  # a new object has nothing below it yet, and may have 100,000 objects
    fields = list(_fields(column or T.StructType(), observed, path, within, resolve, level + 1))
    if column is None and not 0 < len(fields) <= MAX_NAMES:
        kept_as_text[path] = f"an object of more than {MAX_NAMES} names" if fields else NO_VALUE
        return T.StringType()
    if column is not None and len(fields) > MAX_NAMES:
        description = f"field {path} is an object of {len(column)} names in the table and of {len(fields)} in the topic, and a column has {MAX_NAMES} at most"
        return _resolved(column, observed, description, path, kept_as_text, resolve)
    if column is not None:
        kept_as_text.clear()
    kept_as_text.update(within)
    return T.StructType(fields)


_Leaf = Callable[[T.DataType, T.DataType, T.DataType], T.DataType]


def _with_leaves(leaf: _Leaf, columns: T.DataType, observed: T.DataType, unrounded: T.DataType) -> T.DataType:
    """`observed`, with each type but those of objects and arrays replaced by leaf(type of the column, observed, unrounded). NullType: no column yet."""
    match observed, unrounded:
        case T.StructType(), T.StructType():
            # A struct finds a field by its name one by one, and an object may have 100,000.
            kinds, exact = (
                {field.name: field.dataType for field in struct} if isinstance(struct, T.StructType) else {}
                for struct in (columns, unrounded)
            )
            types = {
                field.name: _with_leaves(leaf, kinds.get(field.name, T.NullType()), field.dataType, exact[field.name]) for field in observed
            }
            return T.StructType([T.StructField(name, kind) for name, kind in types.items()])
        case T.ArrayType(), T.ArrayType():
            element = columns.elementType if isinstance(columns, T.ArrayType) else T.NullType()
            return T.ArrayType(_with_leaves(leaf, element, observed.elementType, unrounded.elementType))
    return leaf(columns, observed, unrounded)


def _double_if_whole_by_chance(column: T.DataType, observed: T.DataType, unrounded: T.DataType) -> T.DataType:
    """Double for numbers such as 1.0 that have no column yet."""
    match column, observed, unrounded:
        case T.NullType() | T.StringType(), T.DecimalType(scale=0), T.DecimalType() if observed.precision <= _BIGINT_DIGITS:
            return T.DoubleType()
    return observed


def _mixed_if_rounded(column: T.DataType, observed: T.DataType, unrounded: T.DataType) -> T.DataType:
    """Mixed types where a column is double and there are numbers that it rounds."""
    is_rounded = isinstance(column, T.DoubleType) and isinstance(unrounded, T.StringType | T.VariantType)
    return T.VariantType() if is_rounded else observed


def check_size(columns: T.StructType) -> None:
    """Raises TooManyFields for a table of more than MAX_FIELDS fields, at all levels."""
    if (count := sum(1 for _ in paths(columns))) > MAX_FIELDS:
        msg = f"the records have {count:,} fields, and a table has {MAX_FIELDS:,} at most; put fields whose names are data, such as ids, into an object of their own: one of more than {MAX_NAMES} names is kept as JSON text"
        raise TooManyFields(msg)


def _check_names(columns: T.StructType) -> None:
    """Raises AmbiguousNames: column names are case-insensitive, field names are case-sensitive."""
    taken = {name: f"{name} is a column of every table" for name in RESERVED}
    for path in paths(columns):
        if other := taken.get(without_case(path)):
            msg = f"field {path} cannot be a column: {other}; rename it where the records are made"
            raise AmbiguousNames(msg)
        taken[without_case(path)] = f"{path} is another field that differs in case only"


def _path(parent: str, name: str) -> str:
    quoted = f"`{name.replace('`', '``')}`" if not name.replace("_", "a").isalnum() else name
    return f"{parent}.{quoted}" if parent else quoted
