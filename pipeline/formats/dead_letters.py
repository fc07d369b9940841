"""Dead letters: unusable records, kept unchanged, with the reason."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract.topics import MAX_VALUE_BYTES
from pipeline.formats.json_format import canonical_json

PROBLEM = "problem"
"""The column of records from files that says why a file or line is not a document; null otherwise."""


def dead_letters(records: DataFrame, reason: Column, reader: str = "") -> DataFrame:
    """The records with a reason, in the format of topic `dead-letters`.

    records: columns of sources.kafka.RECORD, plus PROBLEM if they come from files. PROBLEM takes precedence over `reason`.
    reason: string, null for a usable record.
    reader: who could not use the records, for a topic with several readers. It is part of the key, so that readers do not overwrite each
    other's dead letters.
    Returns key (string), value (binary, the raw bytes, at most MAX_VALUE_BYTES), headers (array of {key, value}): topic, partition, offset, timestamp, reason.
    """
    key = ("offset", "partition", *(("reader",) if reader else ()), "topic")
    origin = {name: F.col(name).cast("string") for name in ("topic", "partition", "offset")}
    is_cut = F.when(F.length("value") > MAX_VALUE_BYTES, f"; only its first {MAX_VALUE_BYTES:,} bytes are kept").otherwise("")
    headers = {**origin, "timestamp": F.date_format("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"), "reason": F.concat("reason", is_cut)}
    if PROBLEM in records.columns:
        reason = F.coalesce(PROBLEM, reason)
    return (
        records.withColumns({"reason": reason, "reader": F.lit(reader)})
        .where(F.col("reason").isNotNull())
        .select(
            canonical_json(*key).alias("key"),
            F.substring("value", 1, MAX_VALUE_BYTES).alias("value"),
            F.array(*(F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value")) for name, value in headers.items())).alias(
                "headers"
            ),
        )
    )
