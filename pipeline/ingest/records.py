"""From records of a keyed JSON topic to the newest of each key. Pure."""

import re
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.dead_letters import dead_letters, json_reason
from pipeline.ingest.json_types import RESERVED


def newest(records: DataFrame) -> DataFrame:
    """The newest usable record of each key.

    records: columns of sources.RECORD. Returns the columns of json_types.RESERVED, and `document`: JSON text, null for a deletion.
    Of records in one partition that with the larger offset is newer. Keys stay in one partition unless partitions are added to the topic; of
    records in two partitions that with the later timestamp is newer, of the same time that in the partition with the larger number.
    """
    found = F.struct("offset", "timestamp", F.col("value").cast("string").alias("document"))
    by_partition = (
        records.where(_reason().isNull())
        .groupBy(F.col("key").cast("string").alias("kafka_key"), F.col("partition").alias("kafka_partition"))
        .agg(F.max_by(found, F.col("offset")).alias("found"))
    )
    one = F.struct("kafka_partition", "found")
    return (
        by_partition.groupBy("kafka_key")
        .agg(F.max_by(one, F.struct("found.timestamp", "kafka_partition")).alias("one"))
        .select(
            "kafka_key",
            F.col("one.kafka_partition").alias("kafka_partition"),
            F.col("one.found.offset").alias("kafka_offset"),
            F.col("one.found.timestamp").alias("kafka_timestamp"),
            F.col("one.found.document").alias("document"),
        )
    )


def is_newer(one: str, other: str) -> Column:
    """Whether the row aliased `one` is of a newer record than that aliased `other`: the order of `newest`. Both have the columns of RESERVED."""
    a, b = ({name: F.col(f"{alias}.kafka_{name}") for name in ("partition", "offset", "timestamp")} for alias in (one, other))
    return F.when(a["partition"] == b["partition"], a["offset"] > b["offset"]).otherwise(
        F.struct(a["timestamp"], a["partition"]) > F.struct(b["timestamp"], b["partition"])
    )


def parsed(found: DataFrame, columns: T.StructType) -> DataFrame:
    """What `newest` returns, with `document` as a struct of `columns`; null for a deletion."""
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
