from dataclasses import replace

import pytest
from plain import one_camera
from streaming import at
from text_tables import expect_rows, frame_of

from infrastructure.settings import Settings
from pipeline.domains.nest import queries

CAMERA_STATS = queries(Settings())[0]


@pytest.fixture
def counted(lab, spark):
    locations = frame_of(spark, "device_id  zip_code\ncam-1  94107\ncam-2  94107", "device_id string, zip_code string")
    schema = "topic string, partition int, offset long, device_id string, start_time timestamp"
    return lambda seen: lab.camera_stats(frame_of(spark, seen, schema), locations)


def test_what_two_documents_report_counts_once(counted):
    """Compare the two records that `streamgauge why` shows: what do they have in common, and in what do they differ?"""
    seen = """
    topic      partition  offset  device_id  start_time
    nest-logs  2          0       cam-1      2026-01-01 10:15:00
    nest-logs  2          1       cam-1      2026-01-01 10:15:00
    """
    expect_rows(
        counted(seen),
        """
        zip_code  window                                      count
        94107     {2026-01-01 10:00:00, 2026-01-01 11:00:00}  1
        """,
    )


def test_two_people_count_twice(counted):
    """A camera may see several people, and two cameras may see somebody at the same time."""
    seen = """
    topic      partition  offset  device_id  start_time
    nest-logs  2          0       cam-1      2026-01-01 10:15:00
    nest-logs  2          1       cam-1      2026-01-01 10:20:00
    nest-logs  0          0       cam-2      2026-01-01 10:20:00
    nest-logs  0          1       cam-3      2026-01-01 10:20:00
    """
    expect_rows(
        counted(seen),
        """
        zip_code  window                                      count
        94107     {2026-01-01 10:00:00, 2026-01-01 11:00:00}  3
        unknown   {2026-01-01 10:00:00, 2026-01-01 11:00:00}  1
        """,
    )


def test_what_a_later_batch_reports_again_counts_once(lab, stream):
    """On a stream, a function must not need all rows at once. What a query has seen, it has to keep in its state."""
    counting = stream(replace(CAMERA_STATS, transform=lab.camera_stats), settings=Settings(watermark="1 day"))
    counting.run([one_camera("cam-1", at("10:15"))], [one_camera("cam-1", at("10:15")), one_camera("cam-1", at("11:40"))])
    came = {f"{row['zip_code']} {row['window']['start'][11:16]}": row["count"] for row in counting.table}
    expected = {"unknown 10:00": 1, "unknown 11:00": 1}
    assert came == expected, f"came:      {came}\nexpected:  {expected}"
