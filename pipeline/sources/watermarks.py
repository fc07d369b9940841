"""A watermark that follows the slowest partition. Spark's own watermark follows the fastest.

Spark keeps one watermark per stream: the latest event time of any partition, minus the delay. Partitions rarely reach the same event time
when a bounded batch ends, because producers send in batches and a backlog therefore comes in bursts. Spark then drops rows of the slower
partition as too late although each was in time on its own partition (docs/explained/lateness.md has figures). Spark also combines the watermarks of
several streams, with the policy `min`. This module therefore splits the rows into one stream per partition, gives each its own watermark,
and unions them.

The source is read and decoded once. The split follows a single exchange of narrow rows, which Spark's planner reuses for every branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it

from contract.checkpoints.contents import Partition
from infrastructure.settings import Settings
from pipeline.sources.kafka import ORIGIN

MAX_BRANCHES = 32
"""The maximum number of branches. More make planning too slow; beyond this, several partitions share a branch."""


@dataclass(frozen=True)
class Watermark:
    """The watermark of a query, on the column of the event time.

    delay: how late a row may be, e.g. "60 seconds"; None uses STREAMGAUGE_WATERMARK. skew: how far an idle partition can hold the watermark
    back; None uses STREAMGAUGE_PARTITION_SKEW.
    """

    column: str
    delay: str | None = None
    skew: str | None = None


def shares(partitions: Sequence[Partition], read: Sequence[Sequence[Partition]]) -> list[list[Partition]]:
    """The partitions of each source of a query in real-time mode, MAX_BRANCHES sources at most.

    read: the partitions that each source has read so far, which a checkpoint fixes, as it fixes their number. Empty before the first run.
    A partition that was added later joins the source with the fewest.
    """
    sources: list[list[Partition]] = [list(source) for source in read] or [[] for _ in partitions[:MAX_BRANCHES]]
    assigned = {partition for source in sources for partition in source}
    for partition in partitions:
        if partition not in assigned:
            min(sources, key=len).append(partition)
    return sources


def united(streams: Sequence[DataFrame], watermark: Watermark, settings: Settings) -> DataFrame:
    """The rows of `streams`, each of which gets a watermark of its own: that of their union is the minimum. Drops the columns ORIGIN."""
    delay = watermark.delay or settings.watermark
    return reduce(DataFrame.union, [rows.withWatermark(watermark.column, delay).drop(*ORIGIN) for rows in streams])


def with_watermark(
    rows: DataFrame, watermark: Watermark, settings: Settings, partitions: Sequence[Partition], branches: int | None
) -> DataFrame:
    """The decoded rows of all partitions, with the minimum of the partitions' own watermarks.

    rows: has `topic`, `partition`, `offset` and the column of the event time; the first three are dropped.
    partitions: topic and number of the source's partitions. A partition that is added while the query runs shares a branch.
    branches: the number of branches in the query's first run; None in that run. Spark counts each branch as a source, and a checkpoint fixes the number of
    sources.
    """
    event_time, delay, skew = watermark.column, watermark.delay or settings.watermark, watermark.skew or settings.partition_skew
    branches = branches or min(len(partitions), MAX_BRANCHES)
    if branches == 1:
        return rows.withWatermark(event_time, delay).drop(*ORIGIN)
    branch_by_name = F.create_map(
        *(F.lit(entry) for index, (topic, number) in enumerate(partitions) for entry in (f"{topic}-{number}", index % branches))
    )
    name = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    branch = F.coalesce(F.try_element_at(branch_by_name, name), F.pmod(F.hash(name), F.lit(branches)))
    exchanged = rows.withColumns({"_branch": branch, "_event_time": F.col(event_time)}).repartition(1, "_branch")
    columns = [column for column in rows.columns if column not in ORIGIN]
    return reduce(DataFrame.union, [_branch_of(exchanged, number, event_time, delay, skew).select(*columns) for number in range(branches)])


def _branch_of(exchanged: DataFrame, number: int, event_time: str, delay: str, skew: str) -> DataFrame:
    is_own: Column = F.col("_branch") == number
    # Rows of the other partitions pass under the watermark with an event time `skew` earlier, so that they advance it while this partition
    # is idle, and are then dropped. The filter names the event time; otherwise the planner would push it below the watermark.
    advanced = exchanged.withColumn(
        event_time, F.when(is_own, F.col("_event_time")).otherwise(F.col("_event_time") - F.expr(f"interval {skew}"))
    )
    return advanced.withWatermark(event_time, delay).where(F.when(is_own, F.col("_event_time")) == F.col(event_time))
