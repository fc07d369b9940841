"""A table that holds the newest record of each key, against the topic: distributed, by key."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.checkpoint.contents import Offsets
from pipeline.ingest.json_types import RESERVED
from pipeline.ingest.location import Location
from pipeline.ingest.records import newest, rows
from pipeline.ingest.upsert import ORIGIN
from pipeline.sources import first_and_end_offsets, records_between
from pipeline.verification.outcome import MOST_DIFFERENCES, Difference, Kind, RowCounts
from pipeline.verification.prefix import Prefix
from streamgauge.kafka_topics import is_compacted
from streamgauge.settings import Settings

_WRONG = ("missing", "extra", "different")


class UpsertComparison(NamedTuple):
    """What was found. faults: what is wrong besides rows."""

    counts: RowCounts
    differences: list[Difference]
    faults: list[str]


@dataclass(frozen=True)
class HeldTable:
    """The table of an ingested topic."""

    spark: SparkSession
    settings: Settings
    topic: str

    def version(self) -> int | None:
        """Delta's number of the table as it is now; None when there is no table."""
        path = str(Location.of(self.topic, self.settings).table)
        if not DeltaTable.isDeltaTable(self.spark, path):
            return None
        return cast("int", DeltaTable.forPath(self.spark, path).history(1).collect()[0]["version"])

    def compare(self, version: int | None, prefix: Prefix, ends: Offsets) -> UpsertComparison:
        """Compares the table at `version` with what the records up to `ends` make of it.

        A row whose record the source has lost, to retention or to compaction for the sake of a newer record behind `ends`, is not checkable.
        """
        held = self._held(version)
        columns = T.StructType([one for one in held.schema if one.name not in RESERVED])
        starts = {which: prefix.starts.get(which, 0) for which in ends}
        expected = rows(newest(records_between(self.spark, self.settings, starts, ends)), columns)
        sides = _side(expected, "expected").join(_side(held, "found"), "kafka_key", how="full_outer")
        told = sides.join(self._renewed(ends), "kafka_key", how="left").withColumn("kind", _kind(starts)).persist()
        try:
            counts = {row["kind"]: row["count"] for row in told.groupBy("kind").count().collect()}
            wrong = told.where(F.col("kind").isin(*_WRONG)).orderBy("kafka_key").limit(MOST_DIFFERENCES).collect()
        finally:
            told.unpersist()
        twice = held.groupBy("kafka_key").count().where("count > 1").count()
        faults = [f"keys with more than one row in the table: {twice:,}"] if twice else []
        differences = [
            Difference(cast("Kind", row["kind"]), str(row["kafka_key"]), _loaded(row["expected"]), _loaded(row["found"])) for row in wrong
        ]
        return UpsertComparison(RowCounts(**counts), differences, faults)

    def _held(self, version: int | None) -> DataFrame:
        if version is None:
            return self.spark.createDataFrame([], ORIGIN)
        path = str(Location.of(self.topic, self.settings).table)
        return self.spark.read.format("delta").option("versionAsOf", version).load(path)

    def _renewed(self, ends: Offsets) -> DataFrame:
        """Keys with records behind `ends` in a compacted topic, which may have lost those before for it: `kafka_key`, `is_renewed`."""
        if not is_compacted(self.settings.kafka, self.topic):
            return self.spark.createDataFrame([], "kafka_key string, is_renewed boolean")
        now = {which: end for which, (_, end) in first_and_end_offsets(self.settings, ends).items()}
        behind = records_between(self.spark, self.settings, ends, now)
        return behind.select(F.col("key").cast("string").alias("kafka_key"), F.lit(True).alias("is_renewed")).distinct()  # noqa: FBT003


def _side(table: DataFrame, name: str) -> DataFrame:
    content = F.to_json(F.struct(*(F.col(f"`{column.replace('`', '``')}`") for column in table.columns)), {"ignoreNullFields": "false"})
    where = F.struct(F.col("kafka_partition").alias("partition"), F.col("kafka_offset").alias("offset"))
    return table.select("kafka_key", content.alias(name), where.alias(f"{name}_at"))


def _kind(starts: Offsets) -> Column:
    """The field of RowCounts that a key counts in."""
    is_cut = F.lit(False)  # noqa: FBT003
    for (_, number), start in starts.items():
        is_cut = is_cut | ((F.col("found_at.partition") == number) & (F.col("found_at.offset") < start))
    renewed = F.coalesce("is_renewed", F.lit(False))  # noqa: FBT003
    return (
        F.when(F.col("expected") == F.col("found"), "equal")
        .when(renewed, "not_checkable")
        .when(F.col("found").isNull(), "missing")
        .when(F.col("expected").isNotNull(), "different")
        .when(is_cut, "not_checkable")
        .otherwise("extra")
    )


def _loaded(content: str | None) -> Any:  # noqa: ANN401 - whatever JSON there is
    return None if content is None else json.loads(content)
