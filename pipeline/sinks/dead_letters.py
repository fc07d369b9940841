"""Dead letters: unusable records, kept unchanged, with the reason."""

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract.topics import DEAD_LETTERS, MAX_VALUE_BYTES, Topic
from pipeline.sinks.topics import TopicSink, canonical_json
from pipeline.sources.files import PROBLEM


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


@dataclass(frozen=True)
class DeadLetterTopic(TopicSink):
    """Writes rows of `dead_letters` to topic `dead-letters`.

    reader: the query that could not use the records, if that is part of the key.
    """

    is_kept: ClassVar[bool] = True
    topic: Topic = DEAD_LETTERS
    reader: str = ""

    def records(self, rows: DataFrame) -> DataFrame:
        """Key, value and headers, unchanged."""
        return rows
