from dataclasses import replace

import pytest
from plain import one_camera
from streaming import at
from text_tables import expect_rows, frame_of

from contract.settings import Settings
from pipeline.domains.nest import queries

CAMERA_STATS = queries(Settings())[0]
SEEN = """
device_id  start_time
cam-1      2026-01-01 10:10:00
cam-1      2026-01-01 10:10:00
cam-1      2026-01-01 10:20:00
cam-2      2026-01-01 10:20:00
"""
EXPECTED = """
window                                      count
{2026-01-01 10:00:00, 2026-01-01 11:00:00}  3
"""
BATCHES = ([("cam-1", "10:10")], [("cam-1", "10:10"), ("cam-2", "10:20"), ("cam-1", "11:10")], [("cam-2", "11:20")])
TABLE = {"2026-01-01T10:00:00Z": 2, "2026-01-01T11:00:00Z": 2}


@pytest.fixture
def counting(lab, stream):
    """The product's query with the learner's count: Spark's checkpoint survives each run."""
    query = replace(CAMERA_STATS, transform=lab.count_once, static_tables=(), sink=replace(CAMERA_STATS.sink, key=("window",)))
    return stream(query, settings=Settings(watermark="1 hour"))


def documents(batch):
    return [one_camera(camera, at(time)) for camera, time in batch]


def expect_table(came):
    assert came == TABLE, f"came:      {came}\nexpected:  {TABLE}"


def test_a_report_that_comes_twice_is_one_sighting(lab, spark):
    """Camera and time identify a sighting: dropDuplicates takes a list of columns."""
    expect_rows(lab.count_once(frame_of(spark, SEEN, "device_id string, start_time timestamp")), EXPECTED)


def test_a_report_that_comes_again_in_a_later_batch_is_one_sighting(counting):
    """Spark remembers what it has seen in the query's state, until the watermark has passed it."""
    rows = [row for batch in counting.run(*map(documents, BATCHES)) for row in batch.rows]
    last = {row["window"]["start"]: row["count"] for row in rows}
    expect_table(last)


def test_each_batch_puts_its_rows_into_the_table(lab, counting):
    """In mode update a row is the whole count of its hour so far, and not what the batch has added to it."""
    table = {}
    for batch in counting.run(*map(documents, BATCHES)):
        lab.write(table, batch.rows)
    expect_table(table)


def test_a_kill_in_the_middle_of_a_batch_changes_nothing(lab, counting):
    """The second batch was half written when the process was killed. It runs again, and writes all of its rows."""
    table = {}
    first, second = counting.run(*map(documents, BATCHES[:2]))
    lab.write(table, first.rows)
    lab.write(table, second.rows[:1])
    counting.lose_last_commit()
    for batch in counting.run(documents(BATCHES[2])):
        lab.write(table, batch.rows)
    expect_table(table)
