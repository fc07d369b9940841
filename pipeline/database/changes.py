"""The records of a result topic as changes of a table of the database."""

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from contract.json_text import MAX_ID_CHARACTERS
from infrastructure.rows import FIRST_YEAR, LAST_YEAR
from pipeline.formats.confluent_avro import IS_READ, WriterSchemas
from pipeline.query import Query
from pipeline.sinks.topics import CompactedTopic

IS_DELETED = "_is_deleted"
"""The column of a change that says whether its row is to be deleted."""
OFFSET = "_offset"
"""The column of a change with the offset of its record."""
UNREADABLE = "_unreadable"
"""The column of a change that counts records that cannot be read."""
_NUL, _REPLACEMENT = "\0", "\ufffd"


def table_changes(records: DataFrame, schemas: WriterSchemas | None = None, *, writer: Query, topic: CompactedTopic) -> DataFrame:
    """The records of the topic as changes of a table.

    records: columns of sources.kafka.RECORD, with values written by `schemas` if they are Avro.
    Returns IS_DELETED, UNREADABLE, OFFSET, and the columns of the result of `writer`, with `window` as window_start and window_end. Records of
    another program have 1 in UNREADABLE: a value that is no row deletes the row of its key, and a key that is none is null.
    """
    columns = writer.columns(records.sparkSession)
    key = F.from_json(F.col("key").cast("string"), T.StructType([columns[name] for name in topic.key]))
    row = F.when(F.col("value").isNotNull(), topic.read(columns, schemas))
    is_tombstone, offset = F.col("value").isNull().alias("is_tombstone"), F.col("offset").alias(OFFSET)
    read = records.select(is_tombstone, offset, key.alias("key"), row.alias("row"))
    fields = {
        name: (field.name in topic.key, column, kind) for field in columns for name, column, kind in _flat(field, field.name in topic.key)
    }
    has_key = _all(column.isNotNull() & _is_storable(column, kind) for is_key, column, kind in fields.values() if is_key)
    is_row = F.col("row")[IS_READ] & _all(_is_storable(column, kind) for is_key, column, kind in fields.values() if not is_key)
    checked = read.select("*", F.coalesce(has_key, F.lit(False)).alias("has_key"), F.coalesce(is_row, F.lit(False)).alias("is_row"))  # noqa: FBT003
    is_readable = F.col("has_key") & (F.col("is_tombstone") | F.col("is_row"))
    return checked.select(
        (~F.col("is_row")).alias(IS_DELETED),
        F.when(is_readable, 0).otherwise(1).alias(UNREADABLE),
        OFFSET,
        *(
            F.when(F.col("has_key"), _key_text(column, kind)).alias(name)
            if is_key
            else F.when(F.col("is_row"), _text(column, kind)).alias(name)
            for name, (is_key, column, kind) in fields.items()
        ),
    )


def _flat(field: T.StructField, is_key: bool) -> Iterator[tuple[str, Column, T.DataType]]:  # noqa: FBT001
    """Name, value and type of the columns of a field; of `window`, those of its edges."""
    value = F.col("key" if is_key else "row")[field.name]
    if field.name == "window":
        yield from ((f"window_{edge}", value[edge], T.TimestampType()) for edge in ("start", "end"))
    else:
        yield field.name, value, field.dataType


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(and_, conditions, F.lit(True))  # noqa: FBT003


def _is_storable(value: Column, kind: T.DataType) -> Column:
    """Whether every database can hold the value: a time in the years of rows, a number that is one."""
    if isinstance(kind, T.TimestampType):
        return value.isNull() | F.year(value).between(FIRST_YEAR, LAST_YEAR)
    if isinstance(kind, T.DoubleType):
        return value.isNull() | ~(F.isnan(value) | (F.abs(value) == F.lit(float("inf"))))
    return F.lit(True)  # noqa: FBT003


def _text(value: Column, kind: T.DataType) -> Column:
    """The value; of a text, with U+FFFD for NUL, which PostgreSQL cannot hold."""
    return F.translate(value, _NUL, _REPLACEMENT) if isinstance(kind, T.StringType) else value


def _key_text(value: Column, kind: T.DataType) -> Column:
    """As `_text`. A text of a key that is too long or holds NUL ends in its SHA-256, so that it stays different from every other one."""
    if not isinstance(kind, T.StringType):
        return value
    beginning = F.substring(_text(value, kind), 1, MAX_ID_CHARACTERS - 1 - 64)
    changed = (F.length(value) > MAX_ID_CHARACTERS) | F.contains(value, F.lit(_NUL))
    return F.when(changed, F.concat(beginning, F.lit("\N{HORIZONTAL ELLIPSIS}"), F.sha2(value, 256))).otherwise(value)
