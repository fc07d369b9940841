"""Lab 7: catch up. Read workshop/07-catch-up/README.md."""

from functools import reduce  # noqa: F401 - you may need it

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: F401 - you may need it


def with_watermarks(rows: DataFrame, partitions: int, delay: str) -> DataFrame:
    """Give `rows` a watermark on start_time that no partition can move past the others.

    rows: partition, device_id, start_time; a stream. partitions: how many there are, numbered from 0. delay: how late a row may be.
    Returns device_id, start_time.
    """
    msg = "delete this error to see what the next line loses"
    raise NotImplementedError(msg)
    return rows.withWatermark("start_time", delay).select("device_id", "start_time")
