"""Lab 11: sessions, solved."""

from datetime import datetime

from pyspark.sql import DataFrame, GroupedData, Row
from pyspark.sql import functions as F

GAP = "5 minutes"


def in_sessions(rides: DataFrame) -> GroupedData:
    """The trips of each zone, grouped into sessions: each trip follows another within GAP. A trip counts once.

    rides: fingerprint, zone_id, dropoff; a batch, or a stream with a watermark on dropoff. Records of one trip are equal, and so are their fingerprints.
    Returns groups of zone_id and window{start, end}.
    """
    return rides.dropDuplicates(["fingerprint", "dropoff"]).groupBy("zone_id", F.session_window("dropoff", GAP).alias("window"))


def sessions(rides: DataFrame) -> DataFrame:
    """Each session. Returns zone_id, window{start, end}, last (the drop-off of its last trip), trips (their number)."""
    return in_sessions(rides).agg(F.max("dropoff").alias("last"), F.count("*").alias("trips"))


def final_sessions(rides: DataFrame, until: datetime) -> list[Row]:
    """The sessions of a batch that no trip after the watermark `until` can change: their windows have ended by then.

    until: as Spark returns times. Returns rows of `sessions`.
    """
    return [row for row in sessions(rides).collect() if row.window.end <= until]


def crowded(rides: DataFrame, limit: int) -> DataFrame:
    """Sessions with at least `limit` trips. Returns zone_id, since (the first drop-off), crossed (the drop-off of trip number `limit`)."""
    in_order = F.array_sort(F.collect_list("dropoff"))
    crossed = in_sessions(rides).agg(F.get(in_order, limit - 1).alias("crossed")).where("crossed IS NOT NULL")
    return crossed.select("zone_id", F.col("window.start").alias("since"), "crossed")
