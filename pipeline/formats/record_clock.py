"""Finds events that are in the future of their record; contract.kafka.record_clock in Spark expressions.

The watermark follows the latest event, so one event in the year 2099 would make all others late. The check depends on the record alone,
so a batch that runs again, and `verify`, get the same result.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from contract.kafka.record_clock import CLOCK_MS, LAST_CLOCK_MS

_CREATE_TIME = 0


def clock() -> Column:
    """The clock of a record, a timestamp, from the columns timestamp, timestampType and headers of Spark's Kafka source."""
    stated = F.filter("headers", lambda header: header["key"] == CLOCK_MS)
    # The cast alone would accept blanks and signs.
    text = F.when(F.size(stated) == 1, stated[0]["value"].cast("string"))
    clock_ms = F.when(text.rlike(r"\A[0-9]{1,14}\z"), text.cast("long"))
    is_plausible = (F.col("timestampType") == _CREATE_TIME) & (clock_ms <= LAST_CLOCK_MS)
    return F.when(is_plausible, F.timestamp_millis(clock_ms)).otherwise(F.col("timestamp"))


def latest_event(future: str) -> Column:
    """The latest valid event time of a record with column `clock`: `future`, e.g. "10 minutes", after its clock."""
    return F.col("clock") + F.expr(f"interval {future}")
