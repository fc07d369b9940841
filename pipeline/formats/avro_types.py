"""The type in Spark of an Avro schema, as `from_avro` has it, without Spark. Pure."""

import json
from typing import Any

from fastavro.schema import expand_schema
from pyspark.sql import types as T  # noqa: N812

from pipeline.formats.avro_schemas import UnusableSchemaError

Schema = Any
_PRIMITIVE: dict[str, type[T.DataType]] = {
    "null": T.NullType,
    "boolean": T.BooleanType,
    "int": T.IntegerType,
    "long": T.LongType,
    "float": T.FloatType,
    "double": T.DoubleType,
    "bytes": T.BinaryType,
    "fixed": T.BinaryType,
    "string": T.StringType,
    "enum": T.StringType,
}
_LOGICAL: dict[tuple[str, str], type[T.DataType]] = {
    ("int", "date"): T.DateType,
    **{("long", f"timestamp-{unit}"): T.TimestampType for unit in ("millis", "micros")},
    **{("long", f"local-timestamp-{unit}"): T.TimestampNTZType for unit in ("millis", "micros")},
}


def spark_type(text: str) -> T.DataType:
    """The type of values with this schema, in JSON. Raises UnusableSchemaError for one that Spark cannot read."""
    try:
        schema = expand_schema(json.loads(text))
    except Exception as error:  # fastavro raises many types
        msg = f"it is not valid, or refers to other schemas ({type(error).__name__}: {error!s:.200})"
        raise UnusableSchemaError(msg) from error
    return _type(schema)


def _type(schema: Schema) -> T.DataType:  # noqa: PLR0911 - a line for each type
    if isinstance(schema, list):
        return _union([branch for branch in schema if branch != "null"])
    if isinstance(schema, str):
        if schema not in _PRIMITIVE:  # expanded, so it is the name of an enclosing type
            msg = f"type {schema} contains itself, which Spark does not read"
            raise UnusableSchemaError(msg)
        return _PRIMITIVE[schema]()
    match schema["type"]:
        case "record":
            fields = [T.StructField(one["name"], _type(one["type"]), _is_nullable(one["type"])) for one in schema["fields"]]
            return T.StructType(fields)
        case "array":
            return T.ArrayType(_type(schema["items"]), _is_nullable(schema["items"]))
        case "map":
            return T.MapType(T.StringType(), _type(schema["values"]), _is_nullable(schema["values"]))
        case "bytes" | "fixed" if schema.get("logicalType") == "decimal":
            return T.DecimalType(schema["precision"], schema.get("scale", 0))
        case str() as name:
            return _LOGICAL.get((name, schema.get("logicalType", "")), _PRIMITIVE[name])()
    return _type(schema["type"])


def _union(branches: list[Schema]) -> T.DataType:
    if len(branches) == 1:
        return _type(branches[0])
    for pair, wider in (({"int", "long"}, T.LongType), ({"float", "double"}, T.DoubleType)):
        if len(branches) == len(pair) and {_name(branch) for branch in branches} == pair:
            return wider()
    return T.StructType([T.StructField(f"member{number}", _type(branch), True) for number, branch in enumerate(branches)])  # noqa: FBT003


def _is_nullable(schema: Schema) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


def _name(schema: Schema) -> str:
    return schema if isinstance(schema, str) else schema["type"]
