"""Lab 4: late, solved."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def hourly(seen: DataFrame, delay: str) -> DataFrame:
    """People seen per hour.

    seen: device_id, start_time; a stream. delay: how far the watermark is behind the latest start_time, e.g. "10 minutes".
    Returns window{start, end}, count.
    """
    return seen.withWatermark("start_time", delay).groupBy(F.window("start_time", "1 hour")).count()


UPDATE = """
batch  seen at       watermark  dropped  written
1      10:30         10:20      0        10=1
2      10:05         10:20      0        10=2
3      11:10         11:00      0        11=1
4      10:59         11:00      1        -
5      11:30, 09:00  11:20      1        11=2
6      13:00, 11:59  12:50      0        11=3 13=1
"""

APPEND = """
batch  seen at       written
1      10:30         -
2      10:05         -
3      11:10         10=2
4      10:59         -
5      11:30, 09:00  -
6      13:00, 11:59  11=3
"""
