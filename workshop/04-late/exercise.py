"""Lab 4: late. Read workshop/04-late/README.md."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: F401 - you will need it


def hourly(seen: DataFrame, delay: str) -> DataFrame:
    """People seen per hour.

    seen: device_id, start_time; a stream. delay: how far the watermark is behind the latest start_time, e.g. "10 minutes".
    Returns window{start, end}, count.
    """
    msg = "give `seen` a watermark of `delay` on start_time, and count per window of one hour"
    raise NotImplementedError(msg)


# What you predict, for a delay of 10 minutes. Replace each ? before you run it.
#   watermark: after the batch.
#   dropped: how many sightings of the batch are too late.
#   written: the hours that the query writes after the batch, with their counts, such as 10=1; a dash if it writes none.
UPDATE = """
batch  seen at       watermark  dropped  written
1      10:30         10:20      0        10=1
2      10:05         ?          ?        ?
3      11:10         ?          ?        ?
4      10:59         ?          ?        ?
5      11:30, 09:00  ?          ?        ?
6      13:00, 11:59  ?          ?        ?
"""

# The same in output mode append.
APPEND = """
batch  seen at       written
1      10:30         -
2      10:05         ?
3      11:10         ?
4      10:59         ?
5      11:30, 09:00  ?
6      13:00, 11:59  ?
"""
