from dataclasses import replace

import pytest
from plain import one_camera
from streaming import at
from text_tables import expect_rows, frame_of

from infrastructure.settings import Settings
from pipeline.domains.nest import queries

LOCATIONS = """
device_id  zip_code
cam-1      94107
cam-2      94107
cam-3      02134
"""
SEEN = """
device_id  start_time
cam-1      2026-01-01 10:10:00
cam-2      2026-01-01 10:20:00
cam-3      2026-01-01 10:30:00
cam-1      2026-01-01 11:40:00
"""
EXPECTED = """
zip_code  window                                      count
02134     {2026-01-01 10:00:00, 2026-01-01 11:00:00}  1
94107     {2026-01-01 10:00:00, 2026-01-01 11:00:00}  2
94107     {2026-01-01 11:00:00, 2026-01-01 12:00:00}  1
"""
CAMERA_STATS = queries(Settings())[0]


@pytest.fixture
def locations(spark):
    return frame_of(spark, LOCATIONS, "device_id string, zip_code string")


@pytest.fixture
def seen(spark):
    return lambda table: frame_of(spark, table, "device_id string, start_time timestamp")


def test_people_are_counted_per_zip_code_and_hour(lab, seen, locations):
    """An hour is a window, with a start and an end on a date. You can group by a column that a function makes."""
    expect_rows(lab.camera_stats(seen(SEEN), locations), EXPECTED)


def test_an_hour_begins_with_its_first_instant_and_ends_before_the_next(lab, seen, locations):
    """11:00:00 belongs to the hour that begins then, and to no other."""
    expect_rows(
        lab.camera_stats(
            seen("""
                device_id  start_time
                cam-1      2026-01-01 10:59:59.999
                cam-1      2026-01-01 11:00:00
            """),
            locations,
        ),
        """
        zip_code  window                                      count
        94107     {2026-01-01 10:00:00, 2026-01-01 11:00:00}  1
        94107     {2026-01-01 11:00:00, 2026-01-01 12:00:00}  1
        """,
    )


def test_a_camera_without_a_location_counts_as_unknown(lab, seen, locations):
    """An inner join drops what has no match, in silence. A left join keeps it, with a null on the right."""
    expect_rows(
        lab.camera_stats(
            seen("""
                device_id  start_time
                cam-1      2026-01-01 10:10:00
                cam-8      2026-01-01 10:20:00
                cam-9      2026-01-01 10:30:00
            """),
            locations,
        ),
        """
        zip_code  window                                      count
        94107     {2026-01-01 10:00:00, 2026-01-01 11:00:00}  1
        unknown   {2026-01-01 10:00:00, 2026-01-01 11:00:00}  2
        """,
    )


def test_a_stream_in_three_batches_gives_what_one_batch_gives(lab, stream):
    """The product's own query runs with your function. A stream never ends, so it cannot be sorted, and nothing can be collected from it."""
    batches = [[("cam-1", "10:10"), ("cam-2", "10:20")], [("cam-1", "11:40")], [("cam-3", "10:50"), ("cam-1", "11:45")]]
    counting = stream(replace(CAMERA_STATS, transform=lab.camera_stats), settings=Settings(watermark="1 day"))
    counting.run(*[[one_camera(camera, at(time)) for camera, time in batch] for batch in batches])
    came = {f"{row['zip_code']} {row['window']['start'][11:16]}": row["count"] for row in counting.table}
    expected = {"unknown 10:00": 3, "unknown 11:00": 2}
    assert came == expected, f"came: {came}\nexpected: {expected}"
