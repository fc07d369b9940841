"""The sink that keeps a table of a relational database equal to a compacted topic."""

from dataclasses import dataclass
from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contract.settings import Settings
from pipeline.database.connection import Database
from pipeline.database.keyed_table import IS_DELETED, KeyedTable
from pipeline.sinks.sink import Deletion, Sink

OFFSET = "_offset"
"""The column of a change with the offset of its record."""


@dataclass(frozen=True)
class DatabaseTable(Sink):
    """A table with the newest row of each key. A batch and its number are one transaction, so each batch is written exactly once.

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
        """A writer of changes. Creates the table. Raises DatabaseAway and DatabaseRefuses."""
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
