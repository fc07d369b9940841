"""Dead letters: records that could not be used, kept whole, with the reason."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pipeline.formats.json_format import canonical_json
from pipeline.sources.files import PROBLEM


def dead_letters(records: DataFrame, reason: Column, reader: str = "") -> DataFrame:
    """The records that have a reason, as topic `dead-letters` takes them.

    records: columns of sources.kafka.RECORD, and PROBLEM when they are of files; that goes before `reason`. reason: string, null for a record that is fine. reader: who could not use them, for a topic that more
    than its domain reads; it is part of the key then, so that the letters of one reader do not replace another's.
    Returns key (string), value (binary, the raw bytes), headers (array of {key, value}): topic, partition, offset, timestamp, reason.
    """
    key = ("offset", "partition", *(("reader",) if reader else ()), "topic")
    origin = {name: F.col(name).cast("string") for name in ("topic", "partition", "offset")}
    headers = {**origin, "timestamp": F.date_format("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"), "reason": F.col("reason")}
    if PROBLEM in records.columns:
        reason = F.coalesce(PROBLEM, reason)
    return (
        records.withColumns({"reason": reason, "reader": F.lit(reader)})
        .where(F.col("reason").isNotNull())
        .select(
            canonical_json(*key).alias("key"),
            "value",
            F.array(*(F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in headers.items())).alias(
                "headers"
            ),
        )
    )


def json_reason(text: Column, parsed: Column) -> Column:
    """Why a value is no usable JSON document, or null if it is one.

    text: the value as a string. parsed: whether what the domain needs of it was found (boolean).
    """
    return (
        F.when(text.isNull() | (F.length(text) == 0), "empty")
        .when(parsed, F.lit(None).cast("string"))
        .when(~F.is_valid_utf8(text), "not UTF-8")
        .when(F.try_parse_json(text).isNull(), "not JSON")
    )
