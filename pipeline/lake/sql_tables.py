"""All tables for SQL: those of the lake, archives with each event once, and the result topics."""

from dataclasses import dataclass
from operator import attrgetter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.catalog import all_queries, is_new_version
from pipeline.lake.tables import LakeTable, Table, tables
from pipeline.query import Query
from pipeline.sinks.archives import Archive
from pipeline.sinks.sink import name_in_sql
from pipeline.sinks.topics import CompactedTopic
from pipeline.spark.errors import spark_errors


@dataclass(frozen=True)
class DistinctTable(Table):
    """A view of `table`, which `archive` writes, with each event once: `taxi_trips_distinct`."""

    table: LakeTable
    archive: Archive

    def rows(self, spark: SparkSession) -> DataFrame:
        """See Archive.distinct. Raises StreamgaugeError when the archive cannot be read, or lacks a column that identifies events."""
        rows = self.table.rows(spark)
        with spark_errors(f"the events in table {self.table.name} cannot be identified, because it is not what its archive writes"):
            return self.archive.distinct(rows)


@dataclass(frozen=True)
class LiveTable(Table):
    """The compacted topic that `query` writes to, with the columns of its result: `live_nest_camera_stats`."""

    query: Query
    sink: CompactedTopic
    settings: Settings

    def columns(self, spark: SparkSession) -> T.StructType:
        return self.query.columns(spark)

    def rows(self, spark: SparkSession) -> DataFrame:
        """The last value of each key at the time of each evaluation.

        Raises StreamgaugeError when Kafka or the schema registry cannot be reached, or the topic is missing.
        """
        return self.sink.table(spark, self.settings, self.columns(spark))


def sql_tables(settings: Settings) -> list[Table]:
    """All tables for SQL: those of the lake, archives with each event once, then the live ones. Raises StreamgaugeError when two have the same name."""
    of_lake = tables(settings)
    archives = {query.sink.folder(settings): query.sink for query in all_queries(settings) if isinstance(query.sink, Archive)}
    distinct = [
        DistinctTable(f"{table.name}_distinct", table.path, "view", table, archives[table.path])
        for table in of_lake
        if table.path in archives
    ]
    written = {
        query.sink.topic: (query, query.sink)
        for query in all_queries(settings)
        if isinstance(query.sink, CompactedTopic) and not is_new_version(query)
    }
    live = [LiveTable(name_in_sql(["live", topic.plain_name]), topic.name, "topic", *writer, settings) for topic, writer in written.items()]
    live.sort(key=attrgetter("name"))
    folders = {table.name.casefold(): table.path for table in of_lake}
    for table in (*distinct, *live):
        if table.name in folders:
            msg = f"{folders[table.name]} and {table.format} {table.path} would both be table {table.name}; rename the folder"
            raise StreamgaugeError(msg)
    return [*of_lake, *distinct, *live]
