"""Which events lie in the future of their record: by streamgauge.record_clock, in Spark's terms.

The watermark follows the latest event, so one of the year 2099 would make all others late. It is told by the record alone, so a batch that runs again, and
`verify`, tell the same.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from contract.kafka.record_clock import CLOCK_MS, LAST_CLOCK_MS

_CREATE_TIME = 0


def clock() -> Column:
    """The clock of a record, a timestamp, from the columns timestamp, timestampType and headers of Spark's Kafka source."""
    stated = F.filter("headers", lambda header: header["key"] == CLOCK_MS)
    # Digits only, before the cast: it takes blanks and signs too.
    text = F.when(F.size(stated) == 1, stated[0]["value"].cast("string"))
    clock_ms = F.when(text.rlike(r"\A[0-9]{1,14}\z"), text.cast("long"))
    is_plausible = (F.col("timestampType") == _CREATE_TIME) & (clock_ms <= LAST_CLOCK_MS)
    return F.when(is_plausible, F.timestamp_millis(clock_ms)).otherwise(F.col("timestamp"))


def latest_event(future: str) -> Column:
    """The latest time that an event of a record with column `clock` may have and still count: `future`, e.g. "10 minutes", ahead of it."""
    return F.col("clock") + F.expr(f"interval {future}")
