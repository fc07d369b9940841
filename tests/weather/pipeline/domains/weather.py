"""Weather stations: the average temperature per city and hour."""

from functools import partial

from contract.domains.weather import CITY_STATS, READINGS
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from infrastructure.settings import Settings
from pipeline.formats.json_values import may_be_rounded, reading, refusal, values
from pipeline.query import Query
from pipeline.sinks.dead_letters import DeadLetterTopic, dead_letters
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import KafkaTopic, latest_event
from pipeline.sources.static_tables import StaticTable, fields_of
from pipeline.sources.watermarks import Watermark

STATIONS = StaticTable("weather_stations.csv", schema="station string, city string", unique="station")
_READING = "station string, time timestamp, celsius decimal(5, 1)"
_EVENT_KEY = ("station", "time")


def readings(records: DataFrame, future: str) -> DataFrame:
    """The usable readings. Returns topic, partition, offset, station, time, celsius (decimal, degrees)."""
    usable = _parsed(records).where(_reason(future).isNull())
    return usable.select("topic", "partition", "offset", "reading.*")


def city_stats(rows: DataFrame, stations: DataFrame) -> DataFrame:
    """Readings per city and hour. Returns city, window{start, end}, readings (long), celsius_avg (decimal, degrees)."""
    located = rows.dropDuplicates(list(_EVENT_KEY)).join(F.broadcast(stations), "station", how="left")
    return (
        located.groupBy(F.coalesce("city", F.lit("unknown")).alias("city"), F.window("time", "1 hour"))
        .agg(F.count("*").alias("readings"), F.avg("celsius").alias("celsius_avg"))
        .select("city", "window", "readings", "celsius_avg")
    )


def unusable(records: DataFrame, future: str) -> DataFrame:
    """The other records, as dead letters."""
    return dead_letters(_parsed(records), _reason(future))


def _parsed(records: DataFrame) -> DataFrame:
    text, fields = F.col("text"), fields_of(_READING)
    found = records.withColumn("text", F.col("value").cast("string")).withColumn("found", reading(text, fields))
    return found.withColumn("reading", values(F.col("found.document"), fields, may_be_rounded(text)))


def _reason(future: str) -> Column:
    time = F.col("reading.time")
    return F.coalesce(
        refusal(F.col("text"), F.col("found"), fields_of(_READING)),
        F.when(time.isNull(), "no time").when(time > latest_event(future), "time is in the future"),
    )


def queries(settings: Settings) -> tuple[Query, ...]:
    """The queries of the domain."""
    source = KafkaTopic(READINGS.name)
    return (
        Query(
            "weather-city-stats",
            source=source,
            decode=partial(readings, future=settings.future),
            watermark=Watermark("time"),
            transform=city_stats,
            static_tables=(STATIONS,),
            sink=CompactedTopic(CITY_STATS, key=("city", "window")),
            mode="update",
        ),
        Query("weather-dead-letters", source=source, decode=partial(unusable, future=settings.future), sink=DeadLetterTopic()),
    )
