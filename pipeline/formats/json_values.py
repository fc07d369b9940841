"""Numbers, times and identifiers in JSON: each is kept exactly, or is null and has a reason. docs/values.md lists what is accepted.

from_json alone would take what is not bounded: 1e9999999 becomes a decimal of ten million digits, "00:00:01" a time of today, and 12.345
a decimal(12,2) of 12.35. So it reads numbers as variants and times as text, and this module turns those into values.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from contract.json_text import MAX_ID_CHARACTERS, TIME
from pipeline.formats.json_text import json_reason, parsed

_YEARS = "years 1970 to 9999"
_ROUNDED = r"[\s:,\[]-?(?:\d{16}[eE]|[\d.]{17,}+[eE]|[\d.]{1,16}[eE][+-]?0*+[1-9]\d\d|[\d.]{39})"
"""A number that a double may not keep: of more than 15 digits, or beyond its range."""


def as_read(fields: T.StructType) -> T.StructType:
    """The types by which from_json reads `fields`. Structs keep their shape; arrays and maps are as they are."""
    return T.StructType([T.StructField(field.name, _as_read(field.dataType)) for field in fields])


def reading(text: Column, fields: T.StructType) -> Column:
    """`parsed` of the types `as_read(fields)`: struct<document, misfits>."""
    return parsed(text, ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in as_read(fields)))


def refusal(text: Column, read: Column, fields: T.StructType) -> Column:
    """Why a text is not an object with `fields`, each null or accepted; null if it is. read: its `reading`."""
    return F.coalesce(F.when(read.isNull(), json_reason(text)), flaw(text, read, fields))


def flaw(text: Column, read: Column, fields: T.StructType) -> Column:
    """As `refusal`, for a text that is valid JSON."""
    return F.coalesce(
        misfit(read["document"], fields, may_be_rounded(text)),
        F.when(read["misfits"], "a field is of another type"),
    )


def values(read: Column, fields: T.StructType, is_rounded: Column) -> Column:
    """A struct of `fields`, from one of `as_read(fields)`. A value that is not accepted is null. is_rounded: see `number`."""
    return F.when(
        read.isNotNull(), F.struct(*(value_of(read[field.name], field.dataType, is_rounded).alias(field.name) for field in fields))
    )


def value_of(read: Column, kind: T.DataType, is_rounded: Column) -> Column:
    """The value of that type; null if it is not accepted. is_rounded: see `number`."""
    match kind:
        case T.StructType():
            return values(read, kind, is_rounded)
        case T.TimestampType():
            return time(read)
        case T.IntegralType() | T.DecimalType():
            return number(read, kind, is_rounded)
    return read


def misfit(read: Column, fields: T.StructType, is_rounded: Column) -> Column:
    """Why a value in a struct of `as_read(fields)` is not accepted, and which; null if all are. is_rounded: see `number`."""
    return F.coalesce(*(_misfit(read[field.name], field, is_rounded) for field in fields), F.lit(None).cast("string"))


def time(text: Column) -> Column:
    """The timestamp: date and time of ISO 8601, of the years 1970 to 9999, UTC if there is no offset. Else null.

    Digits beyond microseconds are cut off.
    """
    moment = F.when(text.rlike(rf"\A{TIME}\z"), text.try_cast("timestamp"))
    return F.when(is_plausible(moment), moment)


def number(read: Column, kind: T.DataType, is_rounded: Column) -> Column:
    """The JSON number as `kind`, a whole number or a decimal; null if `kind` cannot hold it exactly.

    is_rounded: `may_be_rounded` of the text that it was read from; of many numbers in one text, evaluate it once.
    """
    text, double = (F.try_variant_get(read, "$", type_name) for type_name in ("string", "double"))
    before, after = (kind.precision - kind.scale, kind.scale) if isinstance(kind, T.DecimalType) else (19, 0)
    pattern = rf"\A-?\d{{1,{before}}}" + (rf"(?:\.\d{{1,{after}}})?" if after else "") + r"\z"
    # Numbers with an exponent, or more digits than a decimal has, are read as doubles.
    by_its_digits = double.try_cast(T.DecimalType(38, after)).try_cast(kind)
    is_exact = (by_its_digits.cast("double") == double) & ~is_rounded
    form = F.schema_of_variant(read)
    return F.when(form.rlike(r"\A(?:BIGINT|DECIMAL)"), F.when(text.rlike(pattern), text.try_cast(kind))).when(
        (form == "DOUBLE") & is_exact, by_its_digits
    )


def may_be_rounded(text: Column) -> Column:
    """Whether a JSON text has a number that a double may not keep."""
    return text.rlike(_ROUNDED)


def is_identifier(text: Column) -> Column:
    """Whether the text is short enough to be part of a key; true for null."""
    return F.coalesce(F.length(text) <= MAX_ID_CHARACTERS, F.lit(True))  # noqa: FBT003


def too_long(name: str) -> str:
    """The reason why an identifier cannot be used."""
    return f"{name} is longer than {MAX_ID_CHARACTERS} characters"


def is_plausible(moment: Column) -> Column:
    """Whether a timestamp is of the years 1970 to 9999. A watermark cannot be computed of much earlier ones, nor can all readers show them."""
    return moment.between(F.lit("1970-01-01T00:00:00Z").cast("timestamp"), F.lit("9999-12-31T23:59:59.999999Z").cast("timestamp"))


def _as_read(kind: T.DataType) -> T.DataType:
    match kind:
        case T.StructType():
            return as_read(kind)
        case T.TimestampType():
            return T.StringType()
        case T.IntegralType() | T.DecimalType():
            return T.VariantType()
    return kind


def _misfit(read: Column, field: T.StructField, is_rounded: Column) -> Column:
    match field.dataType:
        case T.StructType():
            return misfit(read, field.dataType, is_rounded)
        case T.TimestampType():
            return F.when(
                read.isNotNull() & time(read).isNull(), f"{field.name} is not a date and time of the {_YEARS}, such as 2026-01-31T10:00:00Z"
            )
        case T.IntegralType() | T.DecimalType():
            is_there = read.isNotNull() & ~F.is_variant_null(read)
            kind = field.dataType.simpleString()
            return F.when(is_there & number(read, field.dataType, is_rounded).isNull(), f"{field.name} is not a number that {kind} holds")
    return F.lit(None).cast("string")
