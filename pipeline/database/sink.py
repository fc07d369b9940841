"""The queries that carry result topics into tables of the database, and their sink.

They read the topics, and not the queries that write them: so a database that cannot be reached delays nothing else, and one that is added
later receives every row.
"""

from dataclasses import dataclass
from functools import partial
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.settings import Settings
from pipeline.database.connection import Database
from pipeline.database.keyed_table import IS_DELETED, KEY_CHARACTERS, KeyedTable
from pipeline.formats.confluent_avro import WriterSchemas
from pipeline.lake.tables import table_name
from pipeline.query import Query
from pipeline.sinks.sink import Deletion, Sink
from pipeline.sinks.topics import CompactedAvroTopic, CompactedTopic
from pipeline.sources.topic import KafkaTopic

OFFSET = "_offset"
"""The column of a change with the offset of its record."""
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
        columns = T.StructType([one for one in changes if one.name not in {IS_DELETED, OFFSET}])
        return KeyedTable(Database.of(settings), self.name, columns, self.key, self.query)

    def newest(self, changes: DataFrame) -> DataFrame:
        """The last change of each key."""
        others = [name for name in changes.columns if name not in {*self.key, OFFSET}]
        return changes.groupBy(*self.key).agg(F.max_by(F.struct(*others), OFFSET).alias("last")).select(*self.key, "last.*")

    def writer(self, rows: DataFrame, settings: Settings) -> DataStreamWriter:
        """A writer of changes. Creates the table. Raises DatabaseUnavailable and DatabaseRefuses."""
        table = self.table(settings, rows.schema)
        table.prepare()

        def write(batch: DataFrame, number: int) -> None:
            query_id = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
            table.write(self.newest(batch).toArrow(), cast("str", query_id), number)

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
    Returns IS_DELETED, OFFSET, and the columns of the result of `writer`, with `window` as window_start and window_end. PostgreSQL allows no
    NUL in a text, so it becomes U+FFFD; a text in the key is cut at KEY_CHARACTERS. Evaluation fails for a value that is not a row.
    """
    columns = writer.columns(records.sparkSession)
    key_columns = T.StructType([columns[name] for name in topic.key])
    key = F.from_json(F.col("key").cast("string"), key_columns, {"mode": "FAILFAST"})
    row = F.when(F.col("value").isNotNull(), topic.row(columns, schemas))
    both = records.select(F.col("value").isNull().alias(IS_DELETED), F.col("offset").alias(OFFSET), key.alias("key"), row.alias("row"))
    found: dict[str, Column] = {}
    for one in columns:
        is_key = one.name in topic.key
        value = F.col("key" if is_key else "row")[one.name]
        if one.name == "window":
            found |= {f"window_{edge}": value[edge] for edge in ("start", "end")}
        elif isinstance(one.dataType, T.StringType):
            text = F.translate(value, _NUL, _REPLACEMENT)
            found[one.name] = F.substring(text, 1, KEY_CHARACTERS) if is_key else text
        else:
            found[one.name] = value
    return both.select(IS_DELETED, OFFSET, *(column.alias(name) for name, column in found.items()))
