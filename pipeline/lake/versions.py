"""Versions of Delta tables in SQL, as `orders VERSION AS OF 3` and `DESCRIBE HISTORY orders`. Spark itself does not take these for views."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from infrastructure.errors import StreamgaugeError
from infrastructure.lake_environment import HAS_DELTA
from pipeline.lake.read_only import nodes_with_parents
from pipeline.lake.tables import LakeTable, Table
from pipeline.spark.errors import spark_errors

if HAS_DELTA:
    from delta.tables import DeltaTable

_HISTORY = "DescribeDeltaHistory"
_COLUMNS = ("version", "timestamp", "operation", "operationParameters", "operationMetrics")


@dataclass(frozen=True)
class TableVersion(Table):
    """An earlier version of `table`. option: of Delta's reader, with its value."""

    table: LakeTable
    option: tuple[str, str]

    def rows(self, spark: SparkSession) -> DataFrame:
        """The rows of the version. Raises StreamgaugeError if there is none."""
        with spark_errors(f"table {self.table.name} cannot be read at {self.option[1]}"):
            return spark.read.format("delta").option(*self.option).load(str(self.table.path))


def is_history(plan: Any) -> bool:  # noqa: ANN401 - of the JVM
    return str(plan.getClass().getSimpleName()) == _HISTORY


def history(spark: SparkSession, plan: Any, tables: Sequence[Table]) -> DataFrame:  # noqa: ANN401 - of the JVM
    """The versions of the table that a parsed DESCRIBE HISTORY names, the newest first. Raises StreamgaugeError for another table."""
    table = _named(plan.child(), tables)
    limit = plan.limit().get() if plan.limit().isDefined() else None
    return DeltaTable.forPath(spark, str(table.path)).history(limit).select(*_COLUMNS)


def with_versions(sql: str, plan: Any, tables: Sequence[Table]) -> tuple[str, list[TableVersion]]:  # noqa: ANN401 - of the JVM
    """The statement with a table of its own for each version that it names, and these tables. plan: the statement, parsed.

    Raises StreamgaugeError for a version of a table that has none.
    """
    found = [(node, parent) for node, parent in nodes_with_parents(plan) if node.getClass().getSimpleName() == "RelationTimeTravel"]
    found.sort(key=lambda pair: pair[0].origin().startIndex().get(), reverse=True)
    versions = []
    for number, (node, parent) in enumerate(found):
        table = _named(node.relation(), tables)
        version = TableVersion(f"__{number}_{table.name}", table.path, "view", table, _option(node))
        has_alias = parent.getClass().getSimpleName() in {"SubqueryAlias", "Sample"}
        replacement = f"`{version.name}`" if has_alias else f"`{version.name}` AS `{table.name}`"
        start, end = node.relation().origin().startIndex().get(), node.origin().stopIndex().get() + 1
        sql = sql[:start] + replacement + sql[end:]
        versions.append(version)
    return sql, versions


def _option(node: Any) -> tuple[str, str]:  # noqa: ANN401 - of the JVM
    if node.version().isDefined():
        return "versionAsOf", str(node.version().get())
    time = node.timestamp().get()
    if time.getClass().getSimpleName() != "Literal" or time.dataType().simpleString() != "string":
        msg = "expected the time after AS OF as a text, such as '2026-01-31 12:00:00', in UTC"
        raise StreamgaugeError(msg)
    return "timestampAsOf", str(time.value().toString())


def _named(relation: Any, tables: Sequence[Table]) -> LakeTable:  # noqa: ANN401 - of the JVM
    has_name = relation.getClass().getSimpleName() in {"UnresolvedRelation", "UnresolvedTable"}
    name = str(relation.multipartIdentifier().mkString(".") if has_name else relation.simpleStringWithNodeId())
    in_delta = {table.name.casefold(): table for table in tables if isinstance(table, LakeTable) and table.format == "delta"}
    if name.casefold() not in in_delta:
        msg = f"{name} has no versions; these Delta tables have some: {', '.join(table.name for table in in_delta.values()) or 'none'}"
        raise StreamgaugeError(msg)
    return in_delta[name.casefold()]
