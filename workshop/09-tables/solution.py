"""Lab 9: tables, solved."""

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F


def upsert(records: DataFrame, path: str) -> None:
    """Merge a batch of records into the Delta table at `path`: the newest record of each key. The first batch creates the table.

    records: key (string), value (string), offset (long); of one partition. A null value deletes the key's row. The table has the same columns.
    """
    spark = records.sparkSession
    if not DeltaTable.isDeltaTable(spark, path):
        records.limit(0).write.format("delta").save(path)
    rank = F.row_number().over(Window.partitionBy("key").orderBy(F.desc("offset")))
    newest = records.withColumn("rank", rank).where("rank = 1").drop("rank")
    (
        DeltaTable.forPath(spark, path)
        .alias("held")
        .merge(newest.alias("come"), "held.key = come.key")
        .whenMatchedDelete("come.value is null and come.offset > held.offset")
        .whenMatchedUpdateAll("come.offset > held.offset")
        .whenNotMatchedInsertAll("come.value is not null")
        .execute()
    )


def compact(spark: SparkSession, path: str) -> None:
    """Rewrite the small files of the table as one."""
    DeltaTable.forPath(spark, path).optimize().executeCompaction()


def as_of(spark: SparkSession, path: str, version: int) -> DataFrame:
    """The table as it was at `version`."""
    return spark.read.format("delta").option("versionAsOf", version).load(path)
