"""Selects the records of a JSON topic that a table can store, and of these the newest of each key. Pure."""

import re
from collections.abc import Iterator
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from pipeline.formats.json_text import as_text, is_lost, is_rounded, json_reason, may_be_lost, names_differ_in_case_only
from pipeline.ingest.json_types import RESERVED, WITHOUT_CORRUPT_RECORD
from pipeline.sinks.dead_letters import dead_letters
from pipeline.sources.kafka import NO_CLOCK
from pipeline.spark.session import session_config

MAX_LEVELS = 100
"""The limit of nested objects and arrays. Spark plans nested columns by recursion, and its stack is bounded."""


def usable(records: DataFrame, *, append: bool = False) -> DataFrame:
    """The records that a table can store.

    records: columns of sources.kafka.RECORD. append: whether the table has a row per record, which needs no key, but a value.
    Returns the columns of json_types.RESERVED, and `document`: JSON text, null for a tombstone. Numbers that no column of numbers keeps are
    strings in it, because Spark rounds them even where it reads text.
    """
    return records.where(_reason(append=append).isNull()).select(
        F.col("key").cast("string").alias("kafka_key"),
        *(F.col(name).alias(f"kafka_{name}") for name in ("partition", "offset", "timestamp")),
        as_text(F.col("value").cast("string"), is_lost).alias("document"),
    )


def newest(records: DataFrame, earlier: DataFrame | None = None) -> DataFrame:
    """The newest record of each key, where it is one of `records`.

    The records of a key are ordered by `latest`, then partition, then offset, both in the table and in `verify`. `latest` is the highest
    timestamp of the key in the record's partition up to that record. It never decreases within a partition, so the larger offset wins
    there, as in Kafka's compaction, even if timestamps go back. The order is total.

    Of earlier records, only the newest of each key and its `latest` matter: all records it replaced have a `latest` that is no later.

    records: as returned by `usable`.
    earlier: earlier records, columns of json_types.RESERVED, with `latest` as their timestamp.
    Returns the columns of `records`, and `latest`.
    """
    candidates = records.withColumn("is_new", F.lit(True))  # noqa: FBT003
    if earlier is not None:
        candidates = candidates.unionByName(earlier.withColumn("is_new", F.lit(False)), allowMissingColumns=True)  # noqa: FBT003
    last = F.struct("kafka_offset", "kafka_timestamp", "document", "is_new")
    by_partition = candidates.groupBy("kafka_key", "kafka_partition").agg(
        # A batch that runs again after a failure may find its own records in `earlier`.
        F.max_by(last, F.struct("kafka_offset", "is_new")).alias("last"),
        F.max("kafka_timestamp").alias("latest"),
    )
    record = F.max_by(F.struct("kafka_partition", "last.*", "latest"), F.struct("latest", "kafka_partition")).alias("record")
    return by_partition.groupBy("kafka_key").agg(record).where("record.is_new").select("kafka_key", "record.*").drop("is_new")


def parsed(records: DataFrame, columns: T.StructType) -> DataFrame:
    """Records with `document` as a struct of `columns`, null for a tombstone. Returns the columns of RESERVED, and `document`."""
    read = F.from_json("document", columns, WITHOUT_CORRUPT_RECORD)
    document = read if columns.fields else F.when(F.col("document").isNotNull(), F.struct(F.lit(True)))  # noqa: FBT003
    return records.select(*RESERVED, document.alias("document"))


def table_rows(records: DataFrame, columns: T.StructType) -> DataFrame:
    """The rows of a table. records: as returned by `newest` or `usable`. Returns the columns of RESERVED, then `columns`."""
    parsed_records = parsed(records.where(F.col("document").isNotNull()), columns)
    return parsed_records.select(*RESERVED, *(F.col("document")[field.name].alias(field.name) for field in columns))


def observed_type(documents: DataFrame, *, is_unrounded: bool = False) -> T.StructType | None:
    """The common type of all documents, as in json_types; None if there are none.

    documents: column `document`, JSON objects. is_unrounded: numbers that a double rounds count as strings.
    """
    types = F.schema_of_variant_agg(F.parse_json(_document(is_unrounded=is_unrounded)))
    # Otherwise the types of {"id": 1} and {"ID": 2} are one, of the field that comes first.
    with session_config(documents.sparkSession, {"spark.sql.caseSensitive": "true"}):
        printed = documents.where(F.col("document").isNotNull()).agg(types).collect()[0][0]
    return None if printed in {None, "VOID"} else type_of(printed)


def unrounded_type(documents: DataFrame) -> T.StructType | None:
    """As `observed_type`, where numbers that a double rounds count as strings; None if there are none."""
    return None if documents.where(may_be_lost(F.col("document"))).isEmpty() else observed_type(documents, is_unrounded=True)


def types_of_records(documents: DataFrame) -> Iterator[tuple[T.StructType, T.StructType, str]]:
    """Each type and unrounded type that records have by themselves, with the place of the first record: `partition 0, offset 1`."""
    observed, unrounded = (F.schema_of_variant(F.parse_json(_document(is_unrounded=is_unrounded))) for is_unrounded in (False, True))
    first = F.min(F.struct("kafka_partition", "kafka_offset")).alias("at")
    places = documents.where(F.col("document").isNotNull()).groupBy(observed.alias("observed"), unrounded.alias("unrounded")).agg(first)
    for row in places.orderBy("at").toLocalIterator():
        yield type_of(row.observed), type_of(row.unrounded), f"partition {row.at.kafka_partition}, offset {row.at.kafka_offset}"


def _document(*, is_unrounded: bool) -> Column:
    return as_text(F.col("document"), is_rounded) if is_unrounded else F.col("document")


def type_of(printed: str) -> T.StructType:
    """The type of an object, as Spark prints it of variants."""
    # Spark prints OBJECT but parses STRUCT. Field names that contain either word are in backquotes or before a colon, so they do not match.
    ddl = re.sub(r"`(?:[^`]|``)*`|\bOBJECT<", lambda match: "STRUCT<" if match[0] == "OBJECT<" else match[0], printed)
    return cast("T.StructType", T.DataType.fromDDL(ddl))


def unusable(records: DataFrame, reader: str, *, append: bool = False) -> DataFrame:
    """The records that are not `usable`, as dead letters of `reader`: columns of `dead_letters`."""
    return dead_letters(records, _reason(append=append), reader)


def _reason(*, append: bool) -> Column:
    """The reason why a record is not `usable`; null for a usable record. A tombstone is one where it deletes a row."""
    key, value = F.col("key").cast("string"), F.col("value").cast("string")
    is_object, has_rows_per_key = value.rlike(r"\A\s*\{"), F.lit(not append)
    return (
        F.when(F.col("clock").isNull(), NO_CLOCK)
        .when(has_rows_per_key & key.isNull(), "no key")
        .when(~F.is_valid_utf8(key), "the key is not UTF-8")
        .when(has_rows_per_key & F.col("value").isNull(), F.lit(None).cast("string"))
        .otherwise(
            F.coalesce(
                json_reason(value, MAX_LEVELS),
                F.when(~is_object, "no JSON object"),
                F.when(names_differ_in_case_only(value), "an object has two names that differ in case only"),
            )
        )
    )
