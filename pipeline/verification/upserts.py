"""Compares a table that holds the newest record of each key with its topic: distributed, by key."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from contract.kafka.create_topics import is_compacted
from contract.settings import Settings
from pipeline.checkpoint.contents import Offsets
from pipeline.ingest.json_types import ORIGIN, RESERVED
from pipeline.ingest.location import Location
from pipeline.ingest.records import newest, rows, usable
from pipeline.sources.kafka import first_and_end_offsets, records_between
from pipeline.verification.check import Check
from pipeline.verification.outcome import MOST_DIFFERENCES, Difference, Kind, Outcome, RowCounts
from pipeline.verification.prefix import Prefix, looked_at, prefix_of

_WRONG = ("missing", "extra", "different")


def verify(check: Check, location: Location) -> Outcome:
    """Verifies the table at `location`."""
    table = HeldTable(check.spark, check.settings, location)
    committed, planned, version = looked_at(check.place, table.version)
    prefix = prefix_of(check.place, check.settings, committed, planned)
    comparison = table.compare(version, prefix, prefix.ends)
    if comparison.counts.wrong and planned > committed:
        ahead = table.compare(version, prefix, prefix.planned_ends)
        comparison = comparison if ahead.counts.wrong else ahead
    return check.found(prefix, rows=comparison.counts, differences=comparison.differences, faults=comparison.faults)


class UpsertComparison(NamedTuple):
    """The result of a comparison. faults: errors other than wrong rows."""

    counts: RowCounts
    differences: list[Difference]
    faults: list[str]


@dataclass(frozen=True)
class HeldTable:
    """The table of an ingested topic."""

    spark: SparkSession
    settings: Settings
    location: Location

    def version(self) -> int | None:
        """The table's current Delta version. None when there is no table."""
        path = str(self.location.table)
        if not DeltaTable.isDeltaTable(self.spark, path):
            return None
        return cast("int", DeltaTable.forPath(self.spark, path).history(1).collect()[0]["version"])

    def compare(self, version: int | None, prefix: Prefix, ends: Offsets) -> UpsertComparison:
        """Compares the table at `version` with the result of the records up to `ends`.

        Two kinds of rows are not checkable. The first: the source has lost the row's record, through retention or because compaction
        replaced it by a newer record after `ends`. The second: the row comes from another partition than the newest remaining record, and
        the source has lost records of the row's partition, which may have been newer.
        """
        held = self._held(version)
        columns = T.StructType([one for one in held.schema if one.name not in RESERVED])
        starts = {which: prefix.starts.get(which, 0) for which in ends}
        expected = rows(newest(usable(records_between(self.spark, self.settings, starts, ends))), columns)
        is_thinned = is_compacted(self.settings.kafka, self.location.topic)
        sides = _side(expected, "expected").join(_side(held, "found"), "kafka_key", how="full_outer")
        told = sides.join(self._renewed(ends, is_thinned=is_thinned), "kafka_key", how="left")
        told = told.withColumn("kind", _kind(starts, is_thinned=is_thinned)).persist()
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
        path = str(self.location.table)
        return self.spark.read.format("delta").option("versionAsOf", version).load(path)

    def _renewed(self, ends: Offsets, *, is_thinned: bool) -> DataFrame:
        """Keys in a compacted topic with records after `ends`, so that earlier ones may be gone. Columns: `kafka_key`, `is_renewed`."""
        if not is_thinned:
            return self.spark.createDataFrame([], "kafka_key string, is_renewed boolean")
        now = {which: end for which, (_, end) in first_and_end_offsets(self.settings, ends).items()}
        behind = records_between(self.spark, self.settings, ends, now)
        return behind.select(F.col("key").cast("string").alias("kafka_key"), F.lit(True).alias("is_renewed")).distinct()  # noqa: FBT003


def _side(table: DataFrame, name: str) -> DataFrame:
    content = F.to_json(F.struct(*(F.col(f"`{column.replace('`', '``')}`") for column in table.columns)), {"ignoreNullFields": "false"})
    where = F.struct(F.col("kafka_partition").alias("partition"), F.col("kafka_offset").alias("offset"))
    return table.select("kafka_key", content.alias(name), where.alias(f"{name}_at"))


def _kind(starts: Offsets, *, is_thinned: bool) -> Column:
    """The field of RowCounts that counts a key. is_thinned: the topic is compacted; only the last record of a key is sure to exist."""
    is_cut = has_lost = F.lit(False)  # noqa: FBT003
    for (_, number), start in starts.items():
        is_there = F.col("found_at.partition") == number
        is_cut = is_cut | (is_there & (F.col("found_at.offset") < start))
        has_lost = has_lost | (is_there & F.lit(is_thinned or start > 0))
    renewed = F.coalesce("is_renewed", F.lit(False))  # noqa: FBT003
    return (
        F.when(F.col("expected") == F.col("found"), "equal")
        .when(renewed | (has_lost & (F.col("found_at.partition") != F.col("expected_at.partition"))), "not_checkable")
        .when(F.col("found").isNull(), "missing")
        .when(F.col("expected").isNotNull(), "different")
        .when(is_cut, "not_checkable")
        .otherwise("extra")
    )


def _loaded(content: str | None) -> Any:  # noqa: ANN401 - whatever JSON there is
    return None if content is None else json.loads(content)
