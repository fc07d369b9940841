"""Gives columns of JSON text the type that their first values have brought. Pure."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812


def is_retyped(has: T.DataType, wanted: T.DataType) -> bool:
    """Whether a column that is text in `has` is none in `wanted`, at any level."""
    match has, wanted:
        case T.StructType(), T.StructType():
            return any(is_retyped(field.dataType, wanted[field.name].dataType) for field in has if field.name in wanted.names)
        case T.ArrayType(), T.ArrayType():
            return is_retyped(has.elementType, wanted.elementType)
    return isinstance(has, T.StringType) and not isinstance(wanted, T.StringType)


def retyped(value: Column, has: T.DataType, wanted: T.DataType) -> Column:
    """A column of type `has`, with its text as `wanted`: objects by their JSON text, and null for other types, as no value was there."""
    if not is_retyped(has, wanted):
        return value
    match has, wanted:
        case T.StructType(), T.StructType():
            fields = (retyped(value.getField(field.name), field.dataType, wanted[field.name].dataType).alias(field.name) for field in has)
            return F.when(value.isNotNull(), F.struct(*fields))
        case T.ArrayType(), T.ArrayType():
            return F.transform(value, lambda element: retyped(element, has.elementType, wanted.elementType))
        case _, T.StructType():
            return F.from_json(value, wanted)
    return F.lit(None).cast(wanted)
