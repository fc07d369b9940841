"""Lab 5: twice is once. Read workshop/05-twice-is-once/README.md."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: F401 - you will need it


def count_once(seen: DataFrame) -> DataFrame:
    """People seen per hour, each sighting once however often it is reported.

    seen: device_id, start_time; a stream with a watermark on start_time. Returns window{start, end}, count.
    """
    msg = "remove repeated reports of a sighting, and count per window of one hour"
    raise NotImplementedError(msg)


def write(table: dict[str, int], rows: list[dict[str, Any]]) -> None:
    """Put the rows of a batch into `table`, which survives a kill: the count of each hour, by the hour's start.

    rows: such as {"window": {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}, "count": 2}. They may come again after a kill.
    """
    msg = "put each row into `table`, so that rows that come again change nothing"
    raise NotImplementedError(msg)
