"""The queries that carry result topics into tables of the database, and their sink.

They read the topics, and not the queries that write them: so a database that cannot be reached delays nothing else, and one that is added
later receives every row.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from infrastructure.output.terminal import warn
from infrastructure.settings import Settings
from pipeline.database.changes import IS_DELETED, OFFSET, UNREADABLE, table_changes
from pipeline.query import Query
from pipeline.sinks.sink import Deletion, Sink, name_in_sql
from pipeline.sinks.topics import CompactedAvroTopic, CompactedTopic
from pipeline.sources.kafka import KafkaTopic

if TYPE_CHECKING:
    from pipeline.database.keyed_table import KeyedTable


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
        return f"database table {self.name}"

    def table(self, settings: Settings, changes: T.StructType) -> "KeyedTable":
        """The table in the database. changes: the columns of its changes."""
        # SQLAlchemy is slow to import, and every query's program has this module.
        from infrastructure.database import Database
        from pipeline.database.keyed_table import KeyedTable

        columns = T.StructType([field for field in changes if field.name not in {IS_DELETED, UNREADABLE, OFFSET}])
        return KeyedTable(Database.of(settings), self.name, columns, self.key, self.query)

    def newest(self, changes: DataFrame) -> DataFrame:
        """The last change of each key. Changes without a key count as those of one null key. UNREADABLE is the sum over all changes."""
        other_columns = [name for name in changes.columns if name not in {*self.key, UNREADABLE, OFFSET}]
        last, unreadable = F.max_by(F.struct(*other_columns), OFFSET).alias("last"), F.sum(UNREADABLE).alias(UNREADABLE)
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
        decode=partial(table_changes, writer=writer, topic=sink),
        sink=DatabaseTable(name, name_in_sql([sink.topic.plain_name]), key),
        mode="append",
        subject=sink.subject if isinstance(sink, CompactedAvroTopic) else None,
        on_request=writer.on_request,
        trigger_seconds=5,
        version=writer.version,
    )
