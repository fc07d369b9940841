"""Lab 11: sessions. Read workshop/11-sessions/README.md."""

from datetime import datetime

from pyspark.sql import DataFrame, GroupedData, Row
from pyspark.sql import functions as F  # noqa: F401 - you will need it

GAP = "5 minutes"


def in_sessions(rides: DataFrame) -> GroupedData:
    """The trips of each zone, grouped into sessions: each trip follows another within GAP. A trip counts once.

    rides: fingerprint, zone_id, dropoff; a batch, or a stream with a watermark on dropoff. Records of one trip are equal, and so are their fingerprints.
    Returns groups of zone_id and window{start, end}.
    """
    msg = "remove repeated records of a trip, and group by zone and session window"
    raise NotImplementedError(msg)


def sessions(rides: DataFrame) -> DataFrame:
    """Each session. Returns zone_id, window{start, end}, last (the drop-off of its last trip), trips (their number)."""
    msg = "write `in_sessions`, then return the last drop-off and the number of trips of each of its groups"
    raise NotImplementedError(msg)


def final_sessions(rides: DataFrame, until: datetime) -> list[Row]:
    """The sessions of a batch that no trip after the watermark `until` can change: their windows have ended by then.

    until: as Spark returns times. Returns rows of `sessions`.
    """
    msg = "return the sessions whose windows have ended by `until`"
    raise NotImplementedError(msg)


def crowded(rides: DataFrame, limit: int) -> DataFrame:
    """Sessions with at least `limit` trips. Returns zone_id, since (the first drop-off), crossed (the drop-off of trip number `limit`)."""
    msg = "return the sessions that reached `limit`, with the time of that trip"
    raise NotImplementedError(msg)
