"""A watermark for each partition: in time on its own partition is in time, and an idle partition does not hold the others for ever.

The Nest query stands for all: none has a watermark of its own making.
"""

from dataclasses import replace

import pytest
from plain import one_camera
from streaming import Record, at, plan_of_stream

from infrastructure.settings import Settings
from pipeline.domains import nest
from pipeline.sources.watermarks import Watermark, with_watermark

CAMERA_STATS = nest.queries(Settings())[0]
TEN_MINUTES = Settings(watermark="10 minutes", partition_skew="7 days")


def seen(time, partition):
    return Record(one_camera("cam-1", at(time)), partition)


def total(rows):
    return sum(row["count"] for row in rows)


def test_a_partition_that_is_hours_behind_another_loses_nothing(stream):
    counting = stream(CAMERA_STATS, partitions=2, settings=TEN_MINUTES)
    batches = counting.run([seen("10:00", 0), seen("20:00", 1)], [seen("10:01", 0), seen("20:01", 1)], [seen("10:02", 0), seen("20:02", 1)])
    assert [batch.dropped for batch in batches] == [0, 0, 0], "each sighting was in order on its own partition"
    assert total(counting.table) == 6


def test_one_watermark_for_both_would_lose_what_is_behind(stream):
    counting = stream(CAMERA_STATS, partitions=1, settings=TEN_MINUTES)
    _, second = counting.run([seen("10:00", 0), seen("20:00", 0)], [seen("10:01", 0)])
    assert second.dropped == 1


def test_the_partition_that_is_behind_says_what_is_late(stream):
    counting = stream(CAMERA_STATS, partitions=2, settings=TEN_MINUTES)
    first, second = counting.run([seen("10:30", 0), seen("20:00", 1)], [seen("10:20", 0), seen("10:20", 1), seen("10:21", 1)])
    assert first.watermark == at("10:20")
    assert (second.dropped, total(second.rows)) == (2, 2)


@pytest.mark.parametrize(("idle", "busy"), [(0, 1), (1, 0)])
def test_an_idle_partition_holds_the_watermark_back_by_the_skew_and_no_more(stream, settings_of, idle, busy):
    settings = settings_of(STREAMGAUGE_WATERMARK="10 minutes", STREAMGAUGE_PARTITION_SKEW="1 hour")
    counting = stream(CAMERA_STATS, partitions=2, settings=settings)
    first, second = counting.run([seen("20:00", busy)], [seen("18:50", idle), seen("18:51", idle)])
    assert first.watermark == at("18:50"), "an hour and ten minutes behind the partition that has records"
    assert (second.dropped, total(second.rows)) == (1, 1)


def test_a_partition_that_has_become_idle_holds_no_hour_open_beyond_the_skew(stream):
    append = stream(replace(CAMERA_STATS, mode="append"), partitions=2, settings=Settings(watermark="10 minutes", partition_skew="1 hour"))
    both, within, beyond = append.run([seen("10:01", 0), seen("10:02", 1)], [seen("11:30", 1)], [seen("12:10", 1)])
    assert both.rows == within.rows == []
    assert [(row["window"]["start"][11:16], row["count"]) for row in beyond.rows] == [("10:00", 2)]


def test_a_partition_that_was_added_later_is_read_under_the_watermark_of_another(stream):
    counting = stream(CAMERA_STATS, partitions=2, settings=TEN_MINUTES)
    _, second = counting.run([seen("10:00", 0), seen("10:01", 1)], [seen("10:02", 2), seen("10:03", 3)])
    assert (second.dropped, total(counting.table)) == (0, 4)


def test_the_source_is_read_once_whatever_the_number_of_partitions(spark, tmp_path):
    source = spark.readStream.format("rate").option("rowsPerSecond", 1000).load()
    rows = source.selectExpr(
        "timestamp AS seen_at", "value % 10 AS camera", "'a' AS topic", "int(value % 3) AS partition", "value AS offset"
    )
    partitions = [("a", number) for number in range(3)]
    counts = with_watermark(rows, Watermark("seen_at"), Settings(), partitions, branches=None).groupBy("camera").count()
    plan = plan_of_stream(counts, tmp_path)
    assert (plan.count("MicroBatchScan["), plan.count("EventTimeWatermark ")) == (1, 3)
