"""Determines which rows of a prefix the stream dropped as late."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from contract.errors import StreamgaugeError
from pipeline.checkpoint.contents import Batch, Offsets, Partition
from pipeline.sources.static_tables import fields_of
from pipeline.verification.outcome import Lateness

IN_TIME, UNKNOWN, LATE, WRONGLY_LATE = 0, 1, 2, 3
IS_AHEAD, LATENESS, LATE_UNTIL = "_is_ahead", "_lateness", "_late_until_ms"
_MAX_BUCKETS = 50_000


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """A range of records of one partition, from offset `start` up to, not including, `end`, with the same rule for lateness.

    A row is late if its event time, in ms, is not after `late_until_ms`, and in time if it is after `in_time_after_ms`. The two are equal
    unless batches are unknown. is_ahead: whether the batch is planned but not committed.
    """

    partition: Partition
    start: int
    end: int
    late_until_ms: int
    in_time_after_ms: int
    is_ahead: bool = False


def offset_ranges(first: Offsets, batches: Sequence[Batch], committed: int) -> list[OffsetRange]:
    """The offset ranges of all records from `first` to the end of the last batch, one for each batch and partition.

    first: where the query started; 0 for partitions that are not in it. batches: the known batches, in order. committed: the last committed
    batch.
    """
    found = []
    before = Batch(-1, first, 0)
    ends = dict(first)
    for batch in batches:
        late_until = before.watermark_ms
        in_time_after = late_until if batch.number == before.number + 1 else batch.watermark_ms
        for which, end in batch.ends.items():
            start = ends.get(which, 0)
            if end > start:
                found.append(OffsetRange(which, start, end, late_until, in_time_after, batch.number > committed))
                ends[which] = end
        before = batch
    return found


def with_lateness(rows: DataFrame, event_time: str, known: Iterable[OffsetRange]) -> DataFrame:
    """Adds the columns LATENESS (IN_TIME, UNKNOWN or LATE), LATE_UNTIL (of the row's offset range, in ms) and IS_AHEAD.

    rows: columns topic, partition, offset and `event_time`. Rows without an event time are dropped, as the stream drops them.
    """
    ranges_frame, width = _buckets(rows, list(known))
    bucket = F.floor(F.col("offset") / F.lit(width)).cast("long")
    is_inside = (F.col("offset") >= F.col("_start")) & (F.col("offset") < F.col("_end"))
    same = (F.col("topic") == F.col("_topic")) & (F.col("partition") == F.col("_partition")) & (bucket == F.col("_bucket"))
    time = F.col(event_time)
    lateness = (
        F.when(time <= F.timestamp_millis(LATE_UNTIL), LATE)
        .when(time > F.timestamp_millis("_in_time_after_ms"), IN_TIME)
        .otherwise(UNKNOWN)
    )
    return (
        rows.where(time.isNotNull())
        .join(ranges_frame, same & is_inside, how="left")
        .select(*rows.columns, LATE_UNTIL, lateness.alias(LATENESS), F.coalesce("_is_ahead_range", F.lit(False)).alias(IS_AHEAD))  # noqa: FBT003
    )


def _buckets(rows: DataFrame, known: list[OffsetRange]) -> tuple[DataFrame, int]:
    """The offset ranges, one row per bucket of offsets that they overlap, for a join by bucket, and the width of a bucket."""
    width = max(1, sum(one_range.end - one_range.start for one_range in known) // _MAX_BUCKETS)
    values = [(*one.partition, one.start, one.end, one.late_until_ms, one.in_time_after_ms, one.is_ahead) for one in known]
    schema = (
        f"_topic string, _partition int, _start bigint, _end bigint, {LATE_UNTIL} bigint, _in_time_after_ms bigint, _is_ahead_range boolean"
    )
    frame = rows.sparkSession.createDataFrame(pd.DataFrame(values, columns=fields_of(schema).names), schema)
    buckets = F.sequence(F.floor(F.col("_start") / width).cast("long"), F.floor((F.col("_end") - 1) / width).cast("long"))
    return frame.withColumn("_bucket", F.explode(buckets)), width


def watermarks_ahead(flagged: DataFrame, event_time: str, cut_until_ms: int | None) -> list[int]:
    """The watermarks, in ms, that dropped rows of `flagged` but that no counted event explains.

    A watermark never moves back, so the rows with an earlier watermark precede it. It is behind the newest of those rows unless another
    event advanced it.
    flagged: a result of `with_lateness`. cut_until_ms: see Expectation.newest_cut_ms.
    Raises StreamgaugeError when a watermark is ahead of all remaining events and lost records may explain it.
    """
    newest = flagged.groupBy(LATE_UNTIL).agg(F.unix_millis(F.max(event_time)).alias("newest"))
    so_far = Window.orderBy(LATE_UNTIL).rowsBetween(Window.unboundedPreceding, -1)
    newest_of = newest.select(
        LATE_UNTIL, F.max("newest").over(so_far).alias("before"), F.max("newest").over(Window.partitionBy()).alias("of_all")
    )
    ahead = newest_of.where(F.col(LATE_UNTIL) > F.coalesce("before", F.lit(0))).collect()
    if any(row[LATE_UNTIL] > row.of_all and (cut_until_ms is None or row[LATE_UNTIL] <= cut_until_ms) for row in ahead):
        msg = "Kafka has deleted the records that moved the watermark, so it is not known whether the dropped rows were late; `streamgauge reset` recounts what is left"
        raise StreamgaugeError(msg)
    return [row[LATE_UNTIL] for row in ahead if cut_until_ms is not None and row[LATE_UNTIL] > cut_until_ms]


def with_wrongly_late(flagged: DataFrame, event_time: str, ahead: Sequence[int], delay: str) -> DataFrame:
    """Marks as WRONGLY_LATE the late rows that a watermark in `ahead` dropped although they were in time on their partition.

    flagged: a result of `with_lateness`. delay: how far a row may be behind the newest earlier row of its partition, e.g. "10 minutes".
    """
    earlier = Window.partitionBy("topic", "partition").orderBy("offset").rangeBetween(Window.unboundedPreceding, -1)
    is_late = F.col(event_time) <= F.max(event_time).over(earlier) - F.expr(f"interval {delay}")
    is_wrong = (F.col(LATENESS) == LATE) & F.col(LATE_UNTIL).isin(list(ahead)) & ~F.coalesce(is_late, F.lit(False))  # noqa: FBT003
    return flagged.withColumn(LATENESS, F.when(is_wrong, WRONGLY_LATE).otherwise(F.col(LATENESS)))


def lateness_of(flagged: DataFrame, event_key: Sequence[str]) -> Lateness:
    """The counts of the committed rows of `flagged`, a result of `with_lateness`. event_key: the columns that identify an event."""

    def having(value: int) -> Column:
        return F.count_if(F.col(LATENESS) == value)

    events = (
        flagged.where(~F.col(IS_AHEAD))
        .groupBy(*event_key)
        .agg(
            F.count("*").alias("rows"), having(LATE).alias("late"), having(UNKNOWN).alias("unknown"), having(WRONGLY_LATE).alias("wrongly")
        )
    )
    totals = events.agg(
        F.coalesce(F.sum("rows"), F.lit(0)).alias("rows"),
        F.count("*").alias("events"),
        F.coalesce(F.sum("late"), F.lit(0)).alias("late_rows"),
        F.count_if(F.col("late") == F.col("rows")).alias("late_events"),
        F.coalesce(F.sum("unknown"), F.lit(0)).alias("unknown_rows"),
        F.count_if((F.col("wrongly") > 0) & (F.col("late") + F.col("wrongly") == F.col("rows"))).alias("wrongly_late_events"),
    )
    row = totals.collect()[0]
    return Lateness(**row.asDict())
