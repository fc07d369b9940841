"""Lab 12: your own domain. Read workshop/12-your-own-domain/README.md."""

from functools import partial  # noqa: F401 - you may need it

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contract.topics import compacted_topic
from infrastructure.settings import Settings
from pipeline.formats.json_values import may_be_rounded, reading, refusal, values  # noqa: F401 - you will need them
from pipeline.query import Query
from pipeline.sinks.dead_letters import DeadLetterTopic, dead_letters  # noqa: F401 - you will need them
from pipeline.sinks.topics import CompactedTopic  # noqa: F401 - you will need it
from pipeline.sources.kafka import KafkaTopic, latest_event  # noqa: F401 - you will need them
from pipeline.sources.static_tables import fields_of
from pipeline.sources.watermarks import Watermark  # noqa: F401 - you will need it

STATION_STATS = compacted_topic("bike-station-stats", has_windows=True)
_TRIP = "bike string, station string, ended_at timestamp, minutes int"


def parsed(records: DataFrame) -> DataFrame:
    """The records, with `text`, `found` (what was read) and a struct `trip`: null, or with null fields, if the text is not what it should be."""
    text, fields = F.col("text"), fields_of(_TRIP)
    found = records.withColumn("text", F.col("value").cast("string")).withColumn("found", reading(text, fields))
    return found.withColumn("trip", values(F.col("found.document"), fields, may_be_rounded(text)))


def reason(future: str) -> Column:
    """Why a record of `parsed` cannot be used; null if it can. future: how far ended_at may be ahead of the record's clock.

    Reasons: those of `refusal`, "no bike", "no station", "no ended_at", "minutes is negative", "ended_at is in the future".
    """
    msg = "return the reason of each record that cannot be used, null for the others"
    raise NotImplementedError(msg)


def trips(records: DataFrame, future: str) -> DataFrame:
    """The trips that can be used. Returns topic, partition, offset, bike, station, ended_at, minutes."""
    return parsed(records).where(reason(future).isNull()).select("topic", "partition", "offset", "trip.*")


def unusable(records: DataFrame, future: str) -> DataFrame:
    """The other records, as dead letters."""
    return dead_letters(parsed(records), reason(future))


def station_stats(rows: DataFrame) -> DataFrame:
    """Trips per station and hour in which they ended, each trip once: a bike ends one trip at a time.

    Returns station, window{start, end}, trips, minutes (their sum).
    """
    msg = "count each trip once, per station and hour"
    raise NotImplementedError(msg)


def queries(settings: Settings) -> tuple[Query, ...]:
    """`bike-station-stats`, in mode update into STATION_STATS, and `bike-dead-letters`. Both read topic `bike-trips`."""
    msg = "describe the two queries"
    raise NotImplementedError(msg)
