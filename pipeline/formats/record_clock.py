"""Finds events that are in the future of their record; contract.kafka.record_clock in Spark expressions.

The watermark follows the latest event, so one event in the year 2099 would make all others late. The check depends on the record alone,
so a batch that runs again, and `verify`, get the same result.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from contract.kafka.record_clock import CLOCK_MS, LAST_CLOCK_MS

NO_CLOCK = "the record's Kafka timestamp is after the year 2999; expected milliseconds since 1970"
_CREATE_TIME = 0


def clock() -> Column:
    """The clock of a record, a timestamp, from the columns timestamp, timestampType and headers of Spark's Kafka source.

    Null for a Kafka timestamp after the year 2999, such as one in microseconds: a watermark would follow it.
    """
    stated = F.filter("headers", lambda header: header["key"] == CLOCK_MS)
    # The cast alone would accept blanks and signs.
    text = F.when(F.size(stated) == 1, stated[0]["value"].cast("string"))
    clock_ms = F.when(text.rlike(r"\A[0-9]{1,14}\z"), text.cast("long"))
    is_stated = (F.col("timestampType") == _CREATE_TIME) & (clock_ms <= LAST_CLOCK_MS)
    own = F.when(is_stated, F.timestamp_millis(clock_ms)).otherwise(F.col("timestamp"))
    return F.when(F.col("timestamp") <= F.timestamp_millis(F.lit(LAST_CLOCK_MS)), own)


def latest_event(future: str) -> Column:
    """The latest valid event time of a record with column `clock`: `future`, e.g. "10 minutes", after its clock."""
    return F.col("clock") + F.expr(f"interval {future}")
