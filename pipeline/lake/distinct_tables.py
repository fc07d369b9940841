"""The archives with each event once, for SQL: a view of each archive, `taxi_trips_distinct`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.paths import StoragePath
from pipeline.lake.tables import LakeTable
from pipeline.query import Query
from pipeline.sinks.archives import Archive
from pipeline.spark.errors import first_line


@dataclass(frozen=True)
class DistinctTable:
    """The events in `table`, which `archive` writes, each once."""

    table: LakeTable
    archive: Archive
    format: ClassVar[str] = "view"

    @property
    def name(self) -> str:
        """The name in SQL: that of the archive, and _distinct."""
        return f"{self.table.name}_distinct"

    @property
    def path(self) -> StoragePath:
        """The folder of the archive."""
        return self.table.path

    def columns(self, spark: SparkSession) -> T.StructType:
        """The columns of the archive."""
        return self.rows(spark).schema

    def rows(self, spark: SparkSession) -> DataFrame:
        """See Archive.distinct. Raises StreamgaugeError when the archive cannot be read, or lacks a column that identifies events."""
        rows = self.table.rows(spark)
        try:
            return self.archive.distinct(rows)
        except AnalysisException as error:
            msg = f"the events in table {self.table.name} cannot be told apart, because it is not what its archive writes: {first_line(error)}"
            raise StreamgaugeError(msg) from error


def distinct_tables(of_lake: Iterable[LakeTable], writers: Iterable[Query], settings: Settings) -> list[DistinctTable]:
    """A table for each of `of_lake` that is an archive of one of `writers`, in order."""
    archives = {query.sink.folder(settings): query.sink for query in writers if isinstance(query.sink, Archive)}
    return [DistinctTable(table, archives[table.path]) for table in of_lake if table.path in archives]
