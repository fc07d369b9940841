"""Selects the newest record of each key of a keyed JSON topic. Pure."""

import re
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.formats.dead_letters import dead_letters, json_reason
from pipeline.ingest.json_types import RESERVED


def usable(records: DataFrame) -> DataFrame:
    """The records that a table can store.

    records: columns of sources.kafka.RECORD.
    Returns the columns of json_types.RESERVED, and `document`: JSON text, null for a tombstone.
    """
    return records.where(_reason().isNull()).select(
        F.col("key").cast("string").alias("kafka_key"),
        *(F.col(name).alias(f"kafka_{name}") for name in ("partition", "offset", "timestamp")),
        F.col("value").cast("string").alias("document"),
    )


def newest(records: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """The newest record of each key, where it is one of `records`.

    The records of a key are ordered by `latest`, then partition, then offset, both in the table and in `verify`. `latest` is the highest
    timestamp of the key in the record's partition up to that record. It never decreases within a partition, so the larger offset wins
    there, as in Kafka's compaction, even if timestamps go back. The order is total.

    Of earlier records, only the newest of each key and its `latest` matter: all records it replaced have a `latest` that is no later.

    records: as returned by `usable`.
    known: earlier records, columns of json_types.RESERVED, with `latest` as their timestamp.
    Returns the columns of `records`, and `latest`.
    """
    given = records.withColumn("is_new", F.lit(True))  # noqa: FBT003
    if known is not None:
        given = given.unionByName(known.withColumn("is_new", F.lit(False)), allowMissingColumns=True)  # noqa: FBT003
    last = F.struct("kafka_offset", "kafka_timestamp", "document", "is_new")
    by_partition = given.groupBy("kafka_key", "kafka_partition").agg(
        # A batch that runs again after a failure may find its own records in `known`.
        F.max_by(last, F.struct("kafka_offset", "is_new")).alias("last"),
        F.max("kafka_timestamp").alias("latest"),
    )
    one = F.max_by(F.struct("kafka_partition", "last.*", "latest"), F.struct("latest", "kafka_partition")).alias("one")
    return by_partition.groupBy("kafka_key").agg(one).where("one.is_new").select("kafka_key", "one.*").drop("is_new")


def parsed(found: DataFrame, columns: T.StructType) -> DataFrame:
    """Records with `document` as a struct of `columns`, null for a tombstone. Returns the columns of RESERVED, and `document`."""
    document = F.from_json("document", columns) if columns.fields else F.when(F.col("document").isNotNull(), F.struct(F.lit(True)))  # noqa: FBT003
    return found.select(*RESERVED, document.alias("document"))


def rows(found: DataFrame, columns: T.StructType) -> DataFrame:
    """The rows of a table. found: as returned by `newest`. Returns the columns of RESERVED, then `columns`."""
    kept = parsed(found.where(F.col("document").isNotNull()), columns)
    return kept.select(*RESERVED, *(F.col("document")[one.name].alias(one.name) for one in columns))


def seen_type(documents: DataFrame) -> T.StructType | None:
    """The common type of all documents, as in json_types; None if there are none. documents: column `document`, JSON objects."""
    found_type = documents.where(F.col("document").isNotNull()).agg(F.schema_of_variant_agg(F.try_parse_json("document"))).collect()[0][0]
    if found_type in {None, "VOID"}:
        return None
    # Spark prints OBJECT but parses STRUCT. Field names that contain either word are in backquotes or before a colon, so they do not match.
    ddl = re.sub(r"`(?:[^`]|``)*`|\bOBJECT<", lambda found: "STRUCT<" if found[0] == "OBJECT<" else found[0], found_type)
    return cast("T.StructType", T.DataType.fromDDL(ddl))


def unusable(records: DataFrame, reader: str) -> DataFrame:
    """The records that no table can store, as dead letters of `reader`: columns of dead_letters.dead_letters."""
    return dead_letters(records, _reason(), reader)


def _reason() -> Column:
    """The reason why a record is unusable; null for a usable record or a tombstone."""
    key, value = F.col("key").cast("string"), F.col("value").cast("string")
    is_object = F.try_parse_json(value).isNotNull() & value.rlike(r"^\s*\{")
    return (
        F.when(key.isNull(), "no key")
        .when(~F.is_valid_utf8(key), "the key is not UTF-8")
        .when(F.col("value").isNull(), F.lit(None).cast("string"))
        .otherwise(F.coalesce(json_reason(value, parsed=is_object), F.when(~is_object, "no JSON object")))
    )
