"""Aggregates: elements collected into arrays, and one in Python beside Spark's own."""

from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from workshop.examples.functions import reports


def collect(spark: SparkSession, _: Path) -> DataFrame:
    """All values of a group as an array, with and without repetitions. Their order is not defined, so sort them."""
    zones = reports(spark).select("zip_code", F.explode("event.zones").alias("zone"))
    listed, distinct = F.sort_array(F.collect_list("zone")), F.sort_array(F.collect_set("zone"))
    return zones.groupBy("zip_code").agg(listed.alias("list"), distinct.alias("set"))


def pandas_udaf(spark: SparkSession, _: Path) -> DataFrame:
    """An aggregate in pandas, which gets each group through Arrow, and the same as a native one, which is faster. One groupBy cannot mix both."""
    spread = pandas_udf(_spread, "long")  # type: ignore[call-overload]
    by_zip_code = reports(spark).groupBy("zip_code")
    in_pandas = by_zip_code.agg(spread("battery").alias("in_pandas"))
    native = by_zip_code.agg((F.max("battery") - F.min("battery")).alias("native"))
    return in_pandas.join(native, "zip_code").orderBy("zip_code")


def _spread(values: pd.Series) -> int:
    return int(values.max() - values.min())
