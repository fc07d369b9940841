"""Ad-hoc SQL over the tables of the lake and the result topics: one read-only statement at a time."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from infrastructure.errors import StreamgaugeError
from infrastructure.output.row_formats import Rows
from pipeline.lake.read_only import WITHOUT_SUBSTITUTION_AND_PATHS, check_plan, check_statement, parsed
from pipeline.lake.tables import Table
from pipeline.lake.versions import history, is_history, with_versions
from pipeline.spark.errors import SparkFailure, first_line, spark_errors
from pipeline.spark.session import MOST_ROWS, session_config

_AS_THEY_ARE = (T.BooleanType, T.NumericType, T.BinaryType)


def answer(spark: SparkSession, sql: str, tables: Sequence[Table], limit: int) -> Rows:
    """The first `limit` rows of the query `sql` over `tables`, with values as `presentable`. Raises StreamgaugeError as `query_result`."""
    limit = min(limit, MOST_ROWS - 1)
    with query_result(spark, sql, tables) as result:
        columns, numbered = result.columns, result.toDF(*(f"c{number}" for number in range(len(result.columns))))
        shown = [presentable(F.col(field.name), field.dataType).alias(field.name) for field in numbered.schema]
        fetched = numbered.limit(limit + 1).select(*shown).toArrow()
    lists = [column.to_pylist(maps_as_pydicts="strict") for column in fetched.slice(0, limit).columns]
    return Rows(columns, [list(row) for row in zip(*lists, strict=True)], is_cut=fetched.num_rows > limit)


@contextmanager
def query_result(spark: SparkSession, sql: str, tables: Sequence[Table]) -> Iterator[DataFrame]:
    """The result of the query `sql` over `tables`, to be evaluated in the block.

    Raises StreamgaugeError for a statement that is not a query, an error in the query, an unknown table, or a failure in Spark.
    """
    with session_config(spark, WITHOUT_SUBSTITUTION_AND_PATHS), spark_errors("Spark cannot parse this SQL"):
        plan = parsed(spark, sql)
    mentioned: list[Table] = []
    try:
        if is_history(plan):
            yield history(spark, plan, tables)
            return
        check_statement(plan)
        sql, versions = with_versions(sql, plan, tables)
        # A view of a table reads its log or lists its files, so only the tables that the query mentions get one.
        mentioned = [*versions, *(table for table in tables if re.search(rf"\b{table.name}\b", sql, re.IGNORECASE))]
        for table in mentioned:
            table.rows(spark).createOrReplaceTempView(f"`{table.name}`")
        with session_config(spark, WITHOUT_SUBSTITUTION_AND_PATHS):
            result = spark.sql(sql)
        check_plan(result._jdf.queryExecution().analyzed(), {table.name.lower() for table in mentioned})
        yield result
    except AnalysisException as error:
        raise StreamgaugeError(_explained(error, tables)) from error
    except (*SparkFailure, pa.ArrowException) as error:
        msg = f"Spark failed to execute this query: {first_line(error)}"
        raise StreamgaugeError(msg) from error
    finally:  # a table may be gone when a shell asks for it again
        for table in mentioned:
            spark.catalog.dropTempView(table.name)


def presentable(value: Column, kind: T.DataType) -> Column:
    """A column of type `kind` in types that Python has for each value.

    Times become text in ISO 8601, because Python's end with the year 9999, and those with a zone are UTC with Z. Intervals and other types become
    text as Spark casts them. Keys of maps become text, too. Bytes in a string that are not UTF-8 become U+FFFD.
    """
    match kind:
        case T.StructType():
            fields = [presentable(value.getField(field.name), field.dataType).alias(field.name) for field in kind]
            return F.when(value.isNotNull(), F.struct(*fields)) if fields else value
        case T.ArrayType():
            return F.transform(value, lambda element: presentable(element, kind.elementType))
        case T.MapType():
            by_text = F.transform_keys(value, lambda key, _: _text(key, kind.keyType))
            return F.transform_values(by_text, lambda _, field: presentable(field, kind.valueType))
    return value if isinstance(kind, _AS_THEY_ARE) else _text(value, kind)


def _text(value: Column, kind: T.DataType) -> Column:
    match kind:
        case T.TimestampType() | T.TimestampNTZType():
            zone = "Z" if isinstance(kind, T.TimestampType) else ""
            return F.concat(F.replace(value.cast("string"), F.lit(" "), F.lit("T")), F.lit(zone))
        case T.VariantType():
            return F.to_json(value)
        case T.BinaryType():
            return F.base64(value)
    return F.make_valid_utf8(value.cast("string"))


def _explained(error: AnalysisException, tables: Sequence[Table]) -> str:
    if error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        name = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        return f"no table {name}; there are {', '.join(table.name for table in tables)}"
    return f"Spark does not take this query: {first_line(error)}"
