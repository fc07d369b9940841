"""The queries that carry result topics into tables of the database, and their sink.

They read the topics, and not the queries that write them: so a database that cannot be reached delays nothing else, and one that is added
later receives every row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_
from typing import cast

import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.rows import FIRST_YEAR, LAST_YEAR
from contract.settings import Settings
from contract.terminal import warn
from pipeline.database.connection import Database
from pipeline.database.keyed_table import IS_DELETED, KEY_CHARACTERS, KeyedTable
from pipeline.formats.confluent_avro import IS_READ, WriterSchemas
from pipeline.lake.tables import table_name
from pipeline.query import Query
from pipeline.sinks.sink import Deletion, Sink
from pipeline.sinks.topics import CompactedAvroTopic, CompactedTopic
from pipeline.sources.topic import KafkaTopic

OFFSET = "_offset"
"""The column of a change with the offset of its record."""
UNREADABLE = "_unreadable"
"""The column of a change that counts records that cannot be read."""
_NUL, _REPLACEMENT = "\0", "\ufffd"


@dataclass(frozen=True)
class DatabaseTable(Sink):
    """The sink: a table with the newest row of each key. A batch and its number are one transaction, so each batch is written exactly once.

    query: the query that writes it. key: the columns of the primary key.
    """

    query: str
    name: str
    key: tuple[str, ...]

    @property
    def place(self) -> str:
        """The table."""
        return f"database table {self.name}"

    def table(self, settings: Settings, changes: T.StructType) -> KeyedTable:
        """The table in the database. changes: the columns of its changes."""
        columns = T.StructType([one for one in changes if one.name not in {IS_DELETED, UNREADABLE, OFFSET}])
        return KeyedTable(Database.of(settings), self.name, columns, self.key, self.query)

    def newest(self, changes: DataFrame) -> DataFrame:
        """The last change of each key, and of the null key of those that have none; UNREADABLE is that of all changes."""
        others = [name for name in changes.columns if name not in {*self.key, UNREADABLE, OFFSET}]
        last, unreadable = F.max_by(F.struct(*others), OFFSET).alias("last"), F.sum(UNREADABLE).alias(UNREADABLE)
        return changes.groupBy(*self.key).agg(last, unreadable).select(*self.key, UNREADABLE, "last.*")

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of changes. Creates the table. Raises DatabaseUnavailable and DatabaseRefuses."""
        table = self.table(settings, rows.schema)
        table.prepare()

        def write(batch: DataFrame, number: int) -> None:
            query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            newest = self.newest(batch).toArrow()
            if unreadable := pc.sum(newest[UNREADABLE]).as_py():
                warn(
                    f"{self.query}: {unreadable:,} records of its topic cannot be read and are left out of {self.place}; find out what wrote them"
                )
            keyed = newest.filter(pc.field(self.key[0]).is_valid()).drop_columns(UNREADABLE)
            table.write(keyed, cast("str", query_id), number)

        return rows.writeStream.foreachBatch(write)

    def deletions(self, settings: Settings) -> list[Deletion]:
        """The table."""
        table = self.table(settings, T.StructType())
        return [Deletion(f"table {self.name} of {table.database}", table.drop)] if table.exists() else []


def in_database(writer: Query) -> Query:
    """The query that keeps a table of the compacted topic that `writer` writes to. Raises TypeError for another sink."""
    sink = writer.sink
    if not isinstance(sink, CompactedTopic):
        raise TypeError(sink)
    name = f"{writer.name}-database"
    key = tuple(column for part in sink.key for column in (("window_start", "window_end") if part == "window" else (part,)))
    return Query(
        name,
        source=KafkaTopic(sink.topic.name, is_table=True),
        decode=partial(changes, writer=writer, topic=sink),
        sink=DatabaseTable(name, table_name([sink.topic.name]), key),
        mode="append",
        subject=sink.subject if isinstance(sink, CompactedAvroTopic) else None,
        on_request=writer.on_request,
        trigger_seconds=5,
        version=writer.version,
    )


def changes(records: DataFrame, schemas: WriterSchemas | None = None, *, writer: Query, topic: CompactedTopic) -> DataFrame:
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
    fields = {name: (one.name in topic.key, column, kind) for one in columns for name, column, kind in _flat(one, one.name in topic.key)}
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
    beginning = F.substring(_text(value, kind), 1, KEY_CHARACTERS - 1 - 64)
    changed = (F.length(value) > KEY_CHARACTERS) | F.contains(value, F.lit(_NUL))
    return F.when(changed, F.concat(beginning, F.lit("\N{HORIZONTAL ELLIPSIS}"), F.sha2(value, 256))).otherwise(value)
