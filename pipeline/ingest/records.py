"""From records of a keyed JSON topic to the newest of each key. Pure."""

import re
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.formats.dead_letters import dead_letters, json_reason
from pipeline.ingest.json_types import RESERVED


def usable(records: DataFrame) -> DataFrame:
    """The records that a table can take.

    records: columns of sources.kafka.RECORD. Returns the columns of json_types.RESERVED, and `document`: JSON text, null for a deletion.
    """
    return records.where(_reason().isNull()).select(
        F.col("key").cast("string").alias("kafka_key"),
        *(F.col(name).alias(f"kafka_{name}") for name in ("partition", "offset", "timestamp")),
        F.col("value").cast("string").alias("document"),
    )


def newest(records: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """The newest record of each key, where that is one of `records`.

    This is the order of the records of a key, the same for the table and for `verify`: by `latest`, then partition, then offset. `latest` is the
    latest timestamp that the key has had in the record's partition up to the record. It never falls within a partition, so there the larger offset
    is newer, as it is for Kafka's compaction, even if timestamps go back; and it is a total order.

    Of what came before, only the newest record of each key and its `latest` matter: whatever lost to it has a `latest` that is no later.

    records: as `usable` returns them. known: records that came before, columns of json_types.RESERVED, with `latest` as their timestamp.
    Returns the columns of `records`, and `latest`.
    """
    given = records.withColumn("is_new", F.lit(True))  # noqa: FBT003
    if known is not None:
        given = given.unionByName(known.withColumn("is_new", F.lit(False)), allowMissingColumns=True)  # noqa: FBT003
    last = F.struct("kafka_offset", "kafka_timestamp", "document", "is_new")
    by_partition = given.groupBy("kafka_key", "kafka_partition").agg(
        # A batch that was cut off and runs again finds its own records known.
        F.max_by(last, F.struct("kafka_offset", "is_new")).alias("last"),
        F.max("kafka_timestamp").alias("latest"),
    )
    one = F.max_by(F.struct("kafka_partition", "last.*", "latest"), F.struct("latest", "kafka_partition")).alias("one")
    return by_partition.groupBy("kafka_key").agg(one).where("one.is_new").select("kafka_key", "one.*").drop("is_new")


def parsed(found: DataFrame, columns: T.StructType) -> DataFrame:
    """Records with `document` as a struct of `columns`; null for a deletion. Returns the columns of RESERVED, and `document`."""
    document = F.from_json("document", columns) if columns.fields else F.when(F.col("document").isNotNull(), F.struct(F.lit(True)))  # noqa: FBT003
    return found.select(*RESERVED, document.alias("document"))


def rows(found: DataFrame, columns: T.StructType) -> DataFrame:
    """The rows of a table. found: as `newest` returns it. Returns the columns of RESERVED, then `columns`."""
    kept = parsed(found.where(F.col("document").isNotNull()), columns)
    return kept.select(*RESERVED, *(F.col("document")[one.name].alias(one.name) for one in columns))


def seen_type(documents: DataFrame) -> T.StructType | None:
    """The type of all documents together, in the terms of json_types; None without any. documents: column `document`, JSON objects."""
    told = documents.where(F.col("document").isNotNull()).agg(F.schema_of_variant_agg(F.try_parse_json("document"))).collect()[0][0]
    if told in {None, "VOID"}:
        return None
    # What Spark calls OBJECT here it calls STRUCT where it reads types. A name that has either in it stands in backquotes, or before a colon.
    ddl = re.sub(r"`(?:[^`]|``)*`|\bOBJECT<", lambda found: "STRUCT<" if found[0] == "OBJECT<" else found[0], told)
    return cast("T.StructType", T.DataType.fromDDL(ddl))


def unusable(records: DataFrame, reader: str) -> DataFrame:
    """The records that no table can take, as dead letters of `reader`: columns of dead_letters.dead_letters."""
    return dead_letters(records, _reason(), reader)


def _reason() -> Column:
    """Why a record is unusable; null if it is not, and for a deletion."""
    key, value = F.col("key").cast("string"), F.col("value").cast("string")
    is_object = F.try_parse_json(value).isNotNull() & value.rlike(r"^\s*\{")
    return (
        F.when(key.isNull(), "no key")
        .when(~F.is_valid_utf8(key), "the key is not UTF-8")
        .when(F.col("value").isNull(), F.lit(None).cast("string"))
        .otherwise(F.coalesce(json_reason(value, parsed=is_object), F.when(~is_object, "no JSON object")))
    )
