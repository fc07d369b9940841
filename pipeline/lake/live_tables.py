"""The result topics as tables for SQL: each is named after its topic, `live_nest_camera_stats`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from contract.errors import StreamgaugeError
from contract.settings import Settings
from pipeline.catalog import known, queries
from pipeline.lake.distinct_tables import distinct_tables
from pipeline.lake.tables import Table, table_name, tables
from pipeline.query import Query
from pipeline.sinks.topics import CompactedTopic

PREFIX = "live"


@dataclass(frozen=True)
class LiveTable:
    """The compacted topic that `query` writes to, with the columns of its result."""

    query: Query
    sink: CompactedTopic
    settings: Settings
    format: ClassVar[str] = "topic"

    @property
    def name(self) -> str:
        """The name in SQL: live_ and the topic's name, with `_` for each character that is not a letter, digit or underscore."""
        return table_name([PREFIX, self.sink.topic.name])

    @property
    def path(self) -> str:
        """The topic."""
        return self.sink.topic.name

    def columns(self, spark: SparkSession) -> T.StructType:
        """The columns. Does not read the topic."""
        return self.query.columns(spark)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The last value of each key at the time of each evaluation.

        Raises StreamgaugeError when Kafka or the schema registry cannot be reached, or the topic is missing.
        """
        return self.sink.rows(spark, self.settings, self.columns(spark))


def live_tables(writers: Iterable[Query], settings: Settings) -> list[LiveTable]:
    """A table for each compacted topic that one of `writers` writes to, sorted by name."""
    by_topic = {
        query.sink.topic.name: LiveTable(query, query.sink, settings) for query in writers if isinstance(query.sink, CompactedTopic)
    }
    return sorted(by_topic.values(), key=lambda table: table.name)


def sql_tables(settings: Settings) -> list[Table]:
    """All tables for SQL: those of the lake, archives with each event once, then the live ones. Raises StreamgaugeError when two have the same name."""
    of_lake = tables(settings)
    derived: list[Table] = [*distinct_tables(of_lake, known(settings), settings), *live_tables(queries(settings), settings)]
    folders = {table.name.casefold(): table.path for table in of_lake}
    for table in derived:
        if table.name in folders:
            msg = f"{folders[table.name]} and {table.format} {table.path} would both be table {table.name}; rename the folder"
            raise StreamgaugeError(msg)
    return [*of_lake, *derived]
