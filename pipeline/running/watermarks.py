"""A watermark that follows the slowest partition, where Spark's own follows the fastest.

Spark keeps one watermark a stream, at the latest event time of any partition less the delay. Two partitions are seldom equally far when
a bounded batch ends: producers batch, so a backlog lies in bursts. Then the rows of the partition that is behind are dropped as late
though each was in time on its own partition (docs/guarantees.md has figures). Spark also combines the watermarks of several streams, by
the policy `min`. So the rows are split into a stream a partition, each with a watermark of its own, and united again.

The source is read and decoded once: the split lies behind one exchange, of narrow rows, which Spark's planner reuses for every branch.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it

MOST_BRANCHES = 32
"""A plan of more branches takes longer to make than it is worth; beyond this many partitions, several share a branch."""


def with_partition_watermarks(
    rows: DataFrame, event_time: str, *, delay: str, skew: str, partitions: Sequence[tuple[str, int]], branches: int | None = None
) -> DataFrame:
    """`rows` with a watermark on `event_time`, at the earliest of the partitions' own watermarks.

    rows: has `topic`, `partition`, `offset` and `event_time`; the first three are dropped. delay: how late a row may be, e.g. "10 minutes".
    skew: an idle partition holds the watermark back by at most this much event time, behind the farthest one.
    partitions: topic and number of those that the source has. One that is added while the query runs shares a branch.
    branches: how many there were in the query's first run, for Spark takes each for a source, and a checkpoint is for so many sources.
    """
    branches = branches or min(len(partitions), MOST_BRANCHES)
    known = F.create_map(
        *(F.lit(entry) for index, (topic, number) in enumerate(partitions) for entry in (f"{topic}-{number}", index % branches))
    )
    name = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    branch = F.coalesce(F.try_element_at(known, name), F.pmod(F.hash(name), F.lit(branches)))
    exchanged = rows.withColumns({"_branch": branch, "_event_time": F.col(event_time)}).repartition(1, "_branch")
    columns = [column for column in rows.columns if column not in {"topic", "partition", "offset"}]
    return reduce(DataFrame.union, [_branch_of(exchanged, number, event_time, delay, skew).select(*columns) for number in range(branches)])


def _branch_of(exchanged: DataFrame, number: int, event_time: str, delay: str, skew: str) -> DataFrame:
    own: Column = F.col("_branch") == number
    # The rows of the other partitions pass under the watermark `skew` earlier, to move it when this partition is idle, and are then
    # left out. That filter names the event time, or the planner would move it in front of the watermark.
    seen = exchanged.withColumn(event_time, F.when(own, F.col("_event_time")).otherwise(F.col("_event_time") - F.expr(f"interval {skew}")))
    return seen.withWatermark(event_time, delay).where(F.when(own, F.col("_event_time")) == F.col(event_time))
