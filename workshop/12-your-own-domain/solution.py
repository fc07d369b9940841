"""Lab 12: your own domain, solved."""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contract.topics import compacted_topic
from infrastructure.settings import Settings
from pipeline.formats.json_values import may_be_rounded, reading, refusal, values
from pipeline.query import Query
from pipeline.sinks.dead_letters import DeadLetterTopic, dead_letters
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import KafkaTopic, latest_event
from pipeline.sources.static_tables import fields_of
from pipeline.sources.watermarks import Watermark

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
    trip = F.col("trip")
    return F.coalesce(
        refusal(F.col("text"), F.col("found"), fields_of(_TRIP)),
        *(F.when(trip[name].isNull(), f"no {name}") for name in ("bike", "station", "ended_at")),
        F.when(trip["minutes"] < 0, "minutes is negative"),
        F.when(trip["ended_at"] > latest_event(future), "ended_at is in the future"),
    )


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
    return (
        rows.dropDuplicates(["bike", "ended_at"])
        .groupBy("station", F.window("ended_at", "1 hour"))
        .agg(F.count("*").alias("trips"), F.sum("minutes").alias("minutes"))
    )


def queries(settings: Settings) -> tuple[Query, ...]:
    """`bike-station-stats`, in mode update into STATION_STATS, and `bike-dead-letters`. Both read topic `bike-trips`."""
    source = KafkaTopic("bike-trips")
    return (
        Query(
            "bike-station-stats",
            source=source,
            decode=partial(trips, future=settings.future),
            watermark=Watermark("ended_at"),
            transform=station_stats,
            sink=CompactedTopic(STATION_STATS, key=("station", "window")),
            mode="update",
        ),
        Query("bike-dead-letters", source=source, decode=partial(unusable, future=settings.future), sink=DeadLetterTopic()),
    )
