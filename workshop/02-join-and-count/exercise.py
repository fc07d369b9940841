"""Lab 2: join and count. Read workshop/02-join-and-count/README.md."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: F401 - you will need it


def camera_stats(seen: DataFrame, locations: DataFrame) -> DataFrame:
    """People seen per zip code and hour.

    seen: device_id, start_time; a stream or a batch. locations: device_id, zip_code; static, unique by device_id.
    Returns zip_code, window{start, end}, count. Cameras without a location count as "unknown".
    """
    msg = "join `seen` with `locations`, count per zip code and hour, and return zip_code, window and count"
    raise NotImplementedError(msg)
