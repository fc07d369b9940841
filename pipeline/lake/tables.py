"""The tables of the lake: finds them on disk, names them for SQL, and reads them with Spark."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.lake_environment import HAS_DELTA, NeedsDelta
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, folders_in
from pipeline.sinks.sink import name_in_sql
from pipeline.spark.errors import SparkFailure, spark_errors

TableFormat = Literal["delta", "parquet"]
_MARKS: dict[str, TableFormat] = {"_delta_log": "delta", "_spark_metadata": "parquet"}
_INTERNAL = ("_", ".")


@dataclass(frozen=True)
class Table(ABC):
    """A table for SQL: a folder of the lake, a view of one, or a result topic.

    name: in SQL. path: that folder or topic. format: how it is stored: delta, parquet or topic; or view.
    """

    name: str
    path: StoragePath | str
    format: Literal[TableFormat, "view", "topic"]

    @abstractmethod
    def rows(self, spark: SparkSession) -> DataFrame:
        """The current rows. Raises StreamgaugeError when the table cannot be read."""

    def columns(self, spark: SparkSession) -> T.StructType:
        """The columns. Raises StreamgaugeError when they are not known."""
        return self.rows(spark).schema


@dataclass(frozen=True)
class LakeTable(Table):
    """A table in folder `path`: a Delta table, or the Parquet files of a Spark streaming query, with their metadata log."""

    path: StoragePath
    format: TableFormat

    def rows(self, spark: SparkSession) -> DataFrame:
        """The current rows. Columns that older Parquet files lack are null. Their numbers get the types of the newest file.

        Raises StreamgaugeError when the table cannot be read, also because nothing was written to it yet.
        """
        with spark_errors(f"table {self.name} in {self.path} cannot be read"):
            if self.format == "delta":
                if not HAS_DELTA:
                    raise NeedsDelta("table " + self.name)
                return spark.read.format("delta").load(str(self.path))
            try:
                return spark.read.option("mergeSchema", "true").parquet(str(self.path))
            except SparkFailure as error:
                if "CANNOT_MERGE_SCHEMAS" not in str(error) or not isinstance(self.path, Path):
                    raise
                return spark.read.schema(_newest_schema(self.path, spark)).parquet(str(self.path))


def _newest_schema(folder: Path, spark: SparkSession) -> T.StructType:
    """The schema of the newest Parquet file. A query applies all schemas that it knows, so this file has every column and the widest types."""
    files = (Path(unquote(urlsplit(uri).path)) for uri in spark.read.parquet(str(folder)).inputFiles())
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    return spark.read.option("basePath", str(folder)).parquet(str(newest)).schema


def tables(settings: Settings) -> list[LakeTable]:
    """The tables below settings.lake, sorted by name. Skips folders that start with `_` or `.`, and symbolic links.

    Raises StreamgaugeError when two tables have the same name; names are case-insensitive in SQL.
    """
    by_name: dict[str, LakeTable] = {}
    for below, kind in table_folders(settings.lake):
        table = LakeTable(name_in_sql(below), settings.lake.joinpath(*below), kind)
        other = by_name.setdefault(table.name.casefold(), table)
        if other is not table:
            msg = f"{other.path} and {table.path} would both be table {table.name}; rename one of the folders"
            raise StreamgaugeError(msg)
    return sorted(by_name.values(), key=lambda table: table.name)


def named_tables(names: Iterable[str], settings: Settings) -> list[LakeTable]:
    """The named tables in order, or all tables if there are no names. Raises StreamgaugeError for an unknown name, and without any table."""
    by_name = {table.name: table for table in tables(settings)}
    if not by_name:
        msg = f"no tables yet in {settings.lake}; first run a query that writes one, such as `streamgauge run nest-archive --once`"
        raise StreamgaugeError(msg)
    wanted = list(dict.fromkeys(names))
    check_names("table", wanted, by_name)
    return [by_name[name] for name in wanted or by_name]


def table_folders(folder: StoragePath, below: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TableFormat]]:
    """Each table below `folder`: the folder names that lead to it, and its format. Skips internal folders, which start with `_` or `.`.

    below: the folder names that lead to `folder`. Without any, `folder` itself is not a table.
    """
    names = folders_in(folder)
    kind = next((kind for mark, kind in _MARKS.items() if mark in names), None)
    if kind is not None and below:
        yield below, kind
    elif kind is None:
        for name in names:
            if not name.startswith(_INTERNAL):
                yield from table_folders(folder / name, (*below, name))
