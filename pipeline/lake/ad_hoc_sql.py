"""Ad-hoc SQL over the tables of the lake and the result topics: one read-only statement at a time."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from py4j.java_gateway import is_instance_of
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from contract.errors import StreamgaugeError
from pipeline.lake.row_formats import Rows
from pipeline.lake.tables import Table
from pipeline.spark.errors import SparkFailure, first_line, spark_errors

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_NO_QUERIES = tuple(f"{_PLANS}.{name}" for name in ("Command", "ParsedStatement", "CompoundBody", "InsertIntoDir", "ScriptTransformation"))
_COMMENT = r"--[^\n]*(?:\n|$)|/\*.*?\*/"
_QUERY = re.compile(rf"(?:[\s(]|{_COMMENT})*(?:select|with|from|values|table)\b", re.IGNORECASE | re.DOTALL)


def answer(spark: SparkSession, sql: str, known: Sequence[Table], limit: int) -> Rows:
    """The first `limit` rows of the query `sql` over the tables `known`. Timestamps with a zone are UTC. Raises StreamgaugeError as `query_result`."""
    with query_result(spark, sql, known) as found:
        columns = found.columns
        fetched = found.toDF(*(f"c{number}" for number in range(len(columns)))).limit(limit + 1).toArrow()
    lists = [column.to_pylist(maps_as_pydicts="lossy") for column in fetched.slice(0, limit).columns]
    return Rows(columns, [list(row) for row in zip(*lists, strict=True)], is_cut=fetched.num_rows > limit)


@contextmanager
def query_result(spark: SparkSession, sql: str, known: Sequence[Table]) -> Iterator[DataFrame]:
    """The result of the query `sql` over the tables `known`, to be evaluated in the block.

    Raises StreamgaugeError for a statement that is not a query, an error in the query, an unknown table, or a failure in Spark.
    """
    with spark_errors("Spark cannot parse this SQL"):
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    # The first word catches Delta's statements, which have no common class. The nodes catch inserts that start like a query.
    if not _QUERY.match(sql) or any(
        is_instance_of(spark.sparkContext._gateway, node, kind) for node in _nodes(plan) for kind in _NO_QUERIES
    ):
        msg = "only queries are allowed, such as `select ... from ...`; this is another kind of statement, and it was not executed"
        raise StreamgaugeError(msg)
    # A view of a table reads its log or lists its files, so only the tables that the query mentions get one.
    mentioned = [table for table in known if re.search(rf"\b{table.name}\b", sql, re.IGNORECASE)]
    try:
        for table in mentioned:
            table.rows(spark).createOrReplaceTempView(f"`{table.name}`")
        yield spark.sql(sql)
    except AnalysisException as error:
        raise StreamgaugeError(_explained(error, known)) from error
    except (*SparkFailure, pa.ArrowException) as error:
        msg = f"Spark failed to execute this query: {first_line(error)}"
        raise StreamgaugeError(msg) from error
    finally:  # a table may be gone when a shell asks for it again
        for table in mentioned:
            spark.catalog.dropTempView(table.name)


def _nodes(plan: Any) -> Iterator[Any]:  # noqa: ANN401 - of the JVM
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _explained(error: AnalysisException, known: Sequence[Table]) -> str:
    if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        name = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        return f"no table {name}; there are {', '.join(table.name for table in known)}"
    return f"Spark does not take this query: {first_line(error)}"
