"""Compares a table that holds the newest record of each key with its topic: distributed, by key."""

import json
from typing import Any, cast

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from contract.kafka.create_topics import is_compacted
from pipeline.checkpoint.contents import Offsets
from pipeline.ingest.json_types import ORIGIN, RESERVED
from pipeline.ingest.records import newest, rows, usable
from pipeline.ingest.upsert import UpsertTable
from pipeline.sources.kafka import first_and_end_offsets
from pipeline.verification.check import Check
from pipeline.verification.outcome import MAX_DIFFERENCES, WRONG, Difference, Kind, Outcome, RowCounts
from pipeline.verification.prefix import Prefix, between_batches


def verify(check: Check, sink: UpsertTable) -> Outcome:
    """Verifies the table of an ingested topic."""
    spark, path = check.spark, str(sink.location(check.settings).table)

    def newest_version() -> int | None:
        is_there = DeltaTable.isDeltaTable(spark, path)
        return cast("int", DeltaTable.forPath(spark, path).history(1).collect()[0]["version"]) if is_there else None

    committed, planned, version = between_batches(check.place, newest_version)
    prefix = check.source.prefix(committed, planned)
    held = spark.createDataFrame([], ORIGIN) if version is None else spark.read.format("delta").option("versionAsOf", version).load(path)
    counts, differences = _compared(check, sink.topic, held, prefix, prefix.ends)
    if counts.wrong and planned > committed:
        of_planned = _compared(check, sink.topic, held, prefix, prefix.planned_ends)
        counts, differences = (counts, differences) if of_planned[0].wrong else of_planned
    twice = held.groupBy("kafka_key").count().where("count > 1").count()
    faults = [f"keys with more than one row in the table: {twice:,}"] if twice else []
    return check.found(prefix, rows=counts, differences=differences, faults=faults)


def _compared(check: Check, topic: str, held: DataFrame, prefix: Prefix, ends: Offsets) -> tuple[RowCounts, list[Difference]]:
    """Compares the rows of the table with the result of the records up to `ends`.

    Two kinds of rows are not checkable. The first: the source has lost the row's record, through retention or because compaction replaced
    it by a newer record after `ends`. The second: the row comes from another partition than the newest remaining record, and the source has
    lost records of the row's partition, which may have been newer.
    """
    columns = T.StructType([one for one in held.schema if one.name not in RESERVED])
    starts = {which: prefix.starts.get(which, 0) for which in ends}
    expected = rows(newest(usable(check.source.between(starts, ends))), columns)
    is_thinned = is_compacted(check.settings.kafka, topic)
    compared = _side(expected, "expected").join(_side(held, "found"), "kafka_key", how="full_outer")
    is_renewed = F.lit(False)  # noqa: FBT003
    if is_thinned:  # earlier records of keys with a later one may be gone
        now = {which: end for which, (_, end) in first_and_end_offsets(check.settings, ends).items()}
        behind = check.source.between(ends, now).select(F.col("key").cast("string").alias("kafka_key"), F.lit(True).alias("is_renewed"))  # noqa: FBT003
        compared, is_renewed = compared.join(behind.distinct(), "kafka_key", how="left"), F.coalesce("is_renewed", is_renewed)
    compared = compared.withColumn("kind", _kind(starts, is_renewed, is_thinned=is_thinned)).persist()
    try:
        counts = {row["kind"]: row["count"] for row in compared.groupBy("kind").count().collect()}
        wrong = compared.where(F.col("kind").isin(*WRONG)).orderBy("kafka_key").limit(MAX_DIFFERENCES).collect()
    finally:
        compared.unpersist()
    return RowCounts(**counts), [
        Difference(cast("Kind", row["kind"]), str(row["kafka_key"]), _loaded(row["expected"]), _loaded(row["found"])) for row in wrong
    ]


def _side(table: DataFrame, name: str) -> DataFrame:
    content = F.to_json(F.struct(*(F.col(f"`{column.replace('`', '``')}`") for column in table.columns)), {"ignoreNullFields": "false"})
    where = F.struct(F.col("kafka_partition").alias("partition"), F.col("kafka_offset").alias("offset"))
    return table.select("kafka_key", content.alias(name), where.alias(f"{name}_at"))


def _kind(starts: Offsets, is_renewed: Column, *, is_thinned: bool) -> Column:
    """The field of RowCounts that counts a key.

    is_renewed: whether the key has a later record. is_thinned: the topic is compacted; only the last record of a key is sure to exist.
    """
    is_cut = has_lost = F.lit(False)  # noqa: FBT003
    for (_, number), start in starts.items():
        is_there = F.col("found_at.partition") == number
        is_cut = is_cut | (is_there & (F.col("found_at.offset") < start))
        has_lost = has_lost | (is_there & F.lit(is_thinned or start > 0))
    return (
        F.when(F.col("expected") == F.col("found"), "equal")
        .when(is_renewed | (has_lost & (F.col("found_at.partition") != F.col("expected_at.partition"))), "not_checkable")
        .when(F.col("found").isNull(), "missing")
        .when(F.col("expected").isNotNull(), "different")
        .when(is_cut, "not_checkable")
        .otherwise("extra")
    )


def _loaded(content: str | None) -> Any:  # noqa: ANN401 - whatever JSON there is
    return None if content is None else json.loads(content)
