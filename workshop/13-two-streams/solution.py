"""Lab 13: two streams, solved."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

TRIPS_DELAY = "10 minutes"
PAYMENTS_DELAY = "20 minutes"


def with_payments(trips: DataFrame, payments: DataFrame) -> DataFrame:
    """Each trip with its payment, or with nulls if none came in time: from the end of the trip to an hour later, both included.

    trips: trip, station, ended_at; a stream whose records are up to TRIPS_DELAY late.
    payments: for_trip, paid_at, cents; a stream whose records are up to PAYMENTS_DELAY late.
    Returns trip, station, ended_at, paid_at, cents.
    """
    ended, paid = trips.withWatermark("ended_at", TRIPS_DELAY), payments.withWatermark("paid_at", PAYMENTS_DELAY)
    in_time = F.expr("for_trip = trip AND paid_at BETWEEN ended_at AND ended_at + INTERVAL 1 HOUR")
    return ended.join(paid, in_time, how="left").select("trip", "station", "ended_at", "paid_at", "cents")


PREDICTED = """
batch  trips                 payments   watermark  written
1      t-1 10:00, t-2 10:05  -          none       -
2      -                     t-1 10:20  09:55      t-1 paid
3      t-3 11:50             -          10:00      -
4      -                     t-3 11:55  11:35      t-2 unpaid, t-3 paid
5      -                     t-2 11:00  11:35      -
"""

MEASURED = """
mode           p50 ms  p95 ms  cores
micro-batches  325     585     1.10
real-time      78      114     0.28
"""
