"""Compares rows that name their record of origin (archives, dead letters) with the expected rows: distributed, by hash."""

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from pipeline.sources.kafka import ORIGIN
from pipeline.verification.outcome import MAX_DIFFERENCES, RowCounts
from pipeline.verification.prefix import Prefix

CONTENT = "content"
"""The row as text. Equal rows have equal texts."""
_FIRST_LEFT, _PREFIX_END = "_first_left", "_prefix_end"
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}


def rows_by_origin(rows: DataFrame, prefix: str) -> DataFrame:
    """Columns of ORIGIN, and CONTENT with all columns of `rows`. prefix: the prefix of the origin's column names in `rows`."""
    origin = [F.col(f"{prefix}{name}").alias(name) for name in ORIGIN]
    return rows.select(*origin, F.to_json(F.struct(*rows.columns), _JSON).alias(CONTENT))


def letters_by_origin(letters: DataFrame, reader: str) -> DataFrame:
    """The dead letters of `reader`, with the columns of `rows_by_origin`.

    CONTENT: key, headers, and the SHA-256 of the value, which may be large. Letters without a record of origin are dropped.
    """
    key = F.from_json(F.col("key").cast("string"), "topic string, partition int, offset bigint, reader string")
    headers = F.transform("headers", lambda header: F.struct(header["key"].alias("key"), header["value"].cast("string").alias("value")))
    content = F.struct(F.col("key").cast("string").alias("key"), F.sha2("value", 256).alias("sha256_of_value"), headers.alias("headers"))
    origin = [key[name].alias(name) for name in ORIGIN]
    is_of_reader = F.coalesce(key["reader"], F.lit("")) == reader
    return letters.where(is_of_reader).select(*origin, F.to_json(content, _JSON).alias(CONTENT)).where(F.col("offset") >= 0)


def compare(expected: DataFrame, found: DataFrame, prefix: Prefix, kept_from: DataFrame | None = None) -> tuple[RowCounts, list[Row]]:
    """Compares the rows of each record of `prefix`. Both frames have the columns of ORIGIN, and CONTENT.

    kept_from: for a sink that has lost rows to retention, the first offset of each partition that it still covers: topic, partition,
    kept_from. Missing rows of earlier records, and of partitions that it lacks, are not checkable.
    Returns the counts, and the origins of the first records with wrong rows.
    """
    bounded = _with_bounds(found, prefix)
    is_ahead = F.coalesce(prefix.is_of_source & (F.col("offset") >= F.col(_PREFIX_END)), F.lit(False))  # noqa: FBT003
    taken = bounded.where(~is_ahead)
    is_left = F.coalesce(F.col("offset") >= F.col(_FIRST_LEFT), F.lit(True))  # noqa: FBT003
    sides = _side(expected, 1, 0).unionAll(_side(taken.where(is_left), 0, 1))
    # Partitioned by record, so that neither grouping needs another shuffle.
    per_row = sides.repartition(*ORIGIN).groupBy(*ORIGIN, "hash").agg(F.sum("expected").alias("expected"), F.sum("found").alias("found"))
    lacking = F.greatest(F.col("expected") - F.col("found"), F.lit(0))
    more = F.greatest(F.col("found") - F.col("expected"), F.lit(0))
    per_record = per_row.groupBy(*ORIGIN).agg(
        F.sum(F.least("expected", "found")).alias("equal"), F.sum(lacking).alias("lacking"), F.sum(more).alias("more")
    )
    is_forgotten = F.lit(False)  # noqa: FBT003
    if kept_from is not None:
        per_record = per_record.join(kept_from, ["topic", "partition"], how="left")
        is_forgotten = F.coalesce(F.col("offset") < F.col("kept_from"), F.lit(True))  # noqa: FBT003
    different, missing = F.least("lacking", "more"), F.col("lacking") - F.least("lacking", "more")
    totals = per_record.agg(
        _total(F.col("equal")).alias("equal"),
        _total(F.when(~is_forgotten, missing)).alias("missing"),
        _total(F.when(is_forgotten, missing)).alias("not_checkable"),
        _total(F.col("more") - different).alias("extra"),
        _total(different).alias("different"),
    ).collect()[0]
    counts = RowCounts(**{**totals.asDict(), "not_checkable": totals["not_checkable"] + taken.where(~is_left).count()})
    is_wrong = (F.col("more") > 0) | ((F.col("lacking") > 0) & ~is_forgotten)
    return counts, per_record.where(is_wrong).orderBy(*ORIGIN).limit(MAX_DIFFERENCES).collect() if counts.wrong else []


def _with_bounds(rows: DataFrame, prefix: Prefix) -> DataFrame:
    """Adds the prefix's bounds in the row's partition, [_FIRST_LEFT, _PREFIX_END); 0 for unknown partitions."""
    bounds = [(topic, number, start, prefix.ends[topic, number]) for (topic, number), start in prefix.starts.items()]
    frame = rows.sparkSession.createDataFrame(bounds, f"_topic string, _partition int, {_FIRST_LEFT} bigint, {_PREFIX_END} bigint")
    same = (F.col("topic") == F.col("_topic")) & (F.col("partition") == F.col("_partition"))
    joined = rows.join(F.broadcast(frame), same, how="left")
    return joined.select(*rows.columns, *(F.coalesce(name, F.lit(0)).alias(name) for name in (_FIRST_LEFT, _PREFIX_END)))


def _side(rows: DataFrame, expected: int, found: int) -> DataFrame:
    return rows.select(*ORIGIN, F.xxhash64(CONTENT).alias("hash"), F.lit(expected).alias("expected"), F.lit(found).alias("found"))


def _total(column: Column) -> Column:
    return F.coalesce(F.sum(column), F.lit(0))
