"""Lab 13: two streams. Read workshop/13-two-streams/README.md."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: F401 - you may need it

TRIPS_DELAY = "10 minutes"
PAYMENTS_DELAY = "20 minutes"


def with_payments(trips: DataFrame, payments: DataFrame) -> DataFrame:
    """Each trip with its payment, or with nulls if none came in time: from the end of the trip to an hour later, both included.

    trips: trip, station, ended_at; a stream whose records are up to TRIPS_DELAY late.
    payments: for_trip, paid_at, cents; a stream whose records are up to PAYMENTS_DELAY late.
    Returns trip, station, ended_at, paid_at, cents.
    """
    msg = "join each trip with its payment, and keep the trips that nobody has paid in time"
    raise NotImplementedError(msg)


# What you predict. Replace each ? before you run it.
#   watermark: after the batch. written: the trips that the query writes after the batch, such as t-1 paid, t-2 unpaid; a dash if it writes none.
PREDICTED = """
batch  trips                 payments   watermark  written
1      t-1 10:00, t-2 10:05  -          none       -
2      -                     t-1 10:20  ?          ?
3      t-3 11:50             -          ?          ?
4      -                     t-3 11:55  ?          ?
5      -                     t-2 11:00  ?          ?
"""

# What you measure on your machine.
MEASURED = """
mode           p50 ms  p95 ms  cores
micro-batches  ?       ?       ?
real-time      ?       ?       ?
"""
