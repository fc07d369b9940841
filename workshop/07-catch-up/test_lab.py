from dataclasses import replace

import pytest
from plain import one_camera
from pyspark.sql import functions as F
from streaming import Record, at

from infrastructure.settings import Settings
from pipeline.domains.nest import queries

CAMERA_STATS = queries(Settings())[0]
PARTITIONS = 3
BURST = ["10:05", "10:25", "10:45", "11:05"]
BACKLOG = [[(partition, time) for time in BURST] for partition in range(PARTITIONS)]


@pytest.fixture
def catching_up(lab, stream):
    """The product's query with the learner's watermarks."""

    def transform(rows):
        watermarked = lab.with_watermarks(rows, PARTITIONS, "10 minutes")
        return watermarked.dropDuplicates(["device_id", "start_time"]).groupBy(F.window("start_time", "1 hour")).count()

    sink = replace(CAMERA_STATS.sink, key=("window",))
    return stream(replace(CAMERA_STATS, transform=transform, watermark=None, static_tables=(), sink=sink))


def documents(batch):
    return [Record(one_camera(f"cam-{partition}", at(time)), partition) for partition, time in batch]


def state(stream, batches):
    counts = {row["window"]["start"][11:16]: row["count"] for row in stream.table}
    return f"{counts}, {sum(batch.dropped for batch in batches)} dropped"


def test_a_backlog_that_comes_in_bursts_is_counted_in_full(catching_up):
    """Each partition is in order. Which watermark does a batch leave behind, and where does the next batch begin?"""
    came = state(catching_up, catching_up.run(*map(documents, BACKLOG)))
    expected = "{'10:00': 9, '11:00': 3}, 0 dropped"
    assert came == expected, f"came:      {came}\nexpected:  {expected}"


def test_the_watermark_follows_the_slowest_partition(catching_up):
    """Of several watermarks, the policy `min` takes the lowest. The product sets it for each session. A longer delay would only hide the loss."""
    together = [(partition, "11:30") for partition in range(PARTITIONS - 1)] + [(PARTITIONS - 1, "11:20")]
    *_, last = catching_up.run(*map(documents, [*BACKLOG, together]))
    came = f"{last.watermark:%H:%M}" if last.watermark else "no watermark"
    assert came == "11:10", f"after partitions 0 and 1 came to 11:30, and partition 2 to 11:20\ncame:      {came}\nexpected:  11:10"


def test_what_is_too_late_on_every_partition_is_dropped_and_counted(catching_up):
    """All partitions are at 11:30, so 10:30 is too late wherever it comes from."""
    together = [(partition, "11:30") for partition in range(PARTITIONS)]
    *_, last = catching_up.run(*map(documents, [*BACKLOG, together, [(1, "10:30")]]))
    assert last.dropped == 1, f"came:      {last.dropped} dropped\nexpected:  1"
