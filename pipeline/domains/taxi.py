"""NYC green taxi: trips, fares and tips per pick-up borough and window of time.

TLC records local New York time without a time zone. The producer and this module treat it as UTC, so a window shows the hour on the clock:
08:00Z is 8 a.m. in New York on every day of the year. When daylight saving time begins, the hour from 02:00 is empty; when it ends, the
hour from 01:00 holds two hours of trips.
"""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from contract.domains.taxi import NYC_TAXI, TAXI_BOROUGH_STATS, TAXI_FLOWS, TAXI_ZONE_SESSIONS, TAXI_ZONE_SESSIONS_EARLY
from contract.json_text import YEAR_10000
from infrastructure import durations
from infrastructure.settings import Settings
from pipeline.formats.json_text import json_reason
from pipeline.formats.json_values import flaw, may_be_rounded, misfit, number, reading, value_of
from pipeline.query import Query
from pipeline.sinks.archives import ParquetArchive
from pipeline.sinks.dead_letters import DeadLetterTopic, dead_letters
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import NO_CLOCK, ORIGIN, KafkaTopic, latest_event
from pipeline.sources.static_tables import StaticTable, fields_of
from pipeline.sources.watermarks import Watermark
from pipeline.state.early_sessions import early_sessions

ZONES = StaticTable("taxi_zone_lookup.csv", schema="LocationID int, Borough string, Zone string", unique="LocationID")
UNKNOWN = "Unknown"
UNKNOWN_ZONE = 264
"""TLC's LocationID for trips that begin nobody knows where."""
SESSION_GAP = "5 minutes"

_MONEY = "decimal(12, 2)"
TRIP = (
    "VendorID bigint, lpep_pickup_datetime bigint, lpep_dropoff_datetime bigint, store_and_fwd_flag string, RatecodeID bigint, "
    "PULocationID bigint, DOLocationID bigint, passenger_count bigint, trip_distance decimal(12, 2), "
    f"fare_amount {_MONEY}, extra {_MONEY}, mta_tax {_MONEY}, tip_amount {_MONEY}, tolls_amount {_MONEY}, ehail_fee {_MONEY}, "
    f"improvement_surcharge {_MONEY}, total_amount {_MONEY}, payment_type bigint, trip_type bigint, congestion_surcharge {_MONEY}"
)
"""The columns of a trip. Amounts are decimals, so sums are exact to the cent."""
MEASURES = ("trip_distance", "fare_amount", "tip_amount", "total_amount")
_OF_SESSIONS = ("fare_amount", "total_amount")
_TIMES = ("lpep_pickup_datetime", "lpep_dropoff_datetime")
_EVENT_KEY = ("dropoff", "fingerprint")


def trips(records: DataFrame, future: str) -> DataFrame:
    """Trips with a valid drop-off time.

    records: columns of sources.kafka.RECORD.
    future: how far a drop-off may be ahead of its record, e.g. "10 minutes"; trips further ahead are dropped.
    Returns topic, partition, offset, fingerprint (SHA-256 of the value), pickup and dropoff (timestamps), and the other columns of TRIP.
    """
    fields = fields_of(TRIP)
    other_fields = [name for name in fields.names if name not in _TIMES]
    # A row of an array of one: Spark would parse the trip once for the condition, and again for the columns.
    usable = F.filter(F.array(_read()), lambda read: _time_reason(_ms(read, "lpep_dropoff_datetime"), future).isNull())
    return (
        records.where("clock is not null")
        .select(*ORIGIN, "value", F.explode(usable).alias("read"))
        .select(
            *ORIGIN,
            F.sha2("value", 256).alias("fingerprint"),
            _timestamp(_ms(F.col("read"), "lpep_pickup_datetime")).alias("pickup"),
            _timestamp(_ms(F.col("read"), "lpep_dropoff_datetime")).alias("dropoff"),
            *(
                value_of(F.col(f"read.document.{name}"), fields[name].dataType, may_be_rounded(_text())).alias(name)
                for name in other_fields
            ),
        )
    )


def borough_stats(rides: DataFrame, zones: DataFrame, window: str = "1 hour", slide: str = "1 hour") -> DataFrame:
    """Trips per pick-up borough and window of drop-off.

    rides: columns of `trips`. Trips have no id, so two records with identical bytes count as one trip.
    zones: LocationID, Borough.
    window, slide: the length of the windows, and the interval between their starts.
    Returns borough, window{start, end}, trips (long), passenger_count_avg (double), and `_sum` and `_avg` (decimal) of each of MEASURES, in
    miles and dollars. Averages skip nulls; an average of nothing but nulls is null.
    """
    once = rides.dropDuplicates(list(_EVENT_KEY))
    located = once.join(F.broadcast(zones), once["PULocationID"] == zones["LocationID"], how="left")
    totals = [total for name in MEASURES for total in (F.sum(name).alias(f"{name}_sum"), F.avg(name).alias(f"{name}_avg"))]
    # avg() would add doubles, whose sum depends on their order.
    passengers = F.try_divide(F.sum(F.col("passenger_count").cast("decimal(19, 0)")).cast("double"), F.count("passenger_count"))
    columns = [f"{name}_{total}" for name in MEASURES for total in ("sum", "avg")]
    return (
        located.groupBy(F.coalesce("Borough", F.lit(UNKNOWN)).alias("borough"), F.window("dropoff", window, slide).alias("window"))
        .agg(F.count("*").alias("trips"), passengers.alias("passenger_count_avg"), *totals)
        .select("borough", "window", "trips", "passenger_count_avg", *columns)
    )


def flows(rides: DataFrame, zones: DataFrame, window: str = "1 hour") -> DataFrame:
    """Trips from each borough to each, per window of drop-off.

    rides: columns of `trips`. Trips have no id, so two records with identical bytes count as one trip.
    zones: LocationID, Borough, Zone.
    window: the length of the windows.
    Returns pickup_borough, dropoff_borough, window{start, end}, trips (long).
    """
    located = with_zones(rides.dropDuplicates(list(_EVENT_KEY)), zones)
    ends = {"pickup_borough": "PUBorough", "dropoff_borough": "DOBorough"}
    boroughs = [F.coalesce(borough, F.lit(UNKNOWN)).alias(name) for name, borough in ends.items()]
    return located.groupBy(*boroughs, F.window("dropoff", window).alias("window")).agg(F.count("*").alias("trips"))


def zone_sessions(rides: DataFrame, zones: DataFrame) -> DataFrame:
    """Sessions of a pick-up zone: its trips, as long as each drop-off follows another within SESSION_GAP.

    A gap of exactly SESSION_GAP continues a session; only a longer one ends it. In a stream, a session is written once, when the watermark
    has passed its end.
    rides: columns of `trips`. Trips have no id, so two records with identical bytes count as one trip.
    zones: LocationID, Borough, Zone.
    Returns zone_id (PULocationID; UNKNOWN_ZONE without one), borough, zone (UNKNOWN if not in `zones`), window{start, end} (the first
    drop-off, and the last plus SESSION_GAP), trips (long), fare_amount_sum and total_amount_sum (decimal, dollars).
    """
    sessions = (
        rides.dropDuplicates(list(_EVENT_KEY))
        .withColumn("zone_id", _zone_id())
        .groupBy("zone_id", F.session_window("dropoff", SESSION_GAP).alias("window"))
        .agg(F.count("*").alias("trips"), *(F.sum(name).alias(f"{name}_sum") for name in _OF_SESSIONS))
    )
    return _with_names(sessions, zones).select("zone_id", "borough", "zone", "window", "trips", *(f"{name}_sum" for name in _OF_SESSIONS))


def zone_sessions_early(rides: DataFrame, zones: DataFrame) -> DataFrame:
    """The sessions of `zone_sessions`, each from its first trip on and again with each batch that changes it.

    rides, zones: as for zone_sessions.
    Returns started (the window's start), and the columns of zone_sessions. If a trip joins a session to an earlier one, or is earlier than
    its first, then all columns but started and zone_id are null for the start that is gone.
    """
    at_ms, totals = F.unix_millis("dropoff").alias("at_ms"), F.array(*_OF_SESSIONS).alias("totals")
    trips = rides.select(_zone_id(), "dropoff", at_ms, F.col("fingerprint").alias("id"), totals)
    gap_ms = round(durations.seconds(SESSION_GAP, "SESSION_GAP") * 1000)
    sessions = _with_names(early_sessions(trips, "zone_id", gap_ms), zones)
    started, end = F.timestamp_millis("start_ms"), F.timestamp_millis(F.col("last_ms") + gap_ms)
    is_there = F.col("events").isNotNull()
    return sessions.select(
        started.alias("started"),
        "zone_id",
        *(F.when(is_there, F.col(name)).alias(name) for name in ("borough", "zone")),
        F.when(is_there, F.struct(started.alias("start"), end.alias("end"))).alias("window"),
        F.col("events").alias("trips"),
        *(F.col("totals")[number].alias(f"{name}_sum") for number, name in enumerate(_OF_SESSIONS)),
    )


def _zone_id() -> Column:
    return F.coalesce("PULocationID", F.lit(UNKNOWN_ZONE)).alias("zone_id")


def _with_names(sessions: DataFrame, zones: DataFrame) -> DataFrame:
    """Adds borough and zone to `zone_id`."""
    located = sessions.join(F.broadcast(zones), sessions["zone_id"] == zones["LocationID"], how="left")
    return located.withColumns({name.lower(): F.coalesce(name, F.lit(UNKNOWN)) for name in ("Borough", "Zone")})


def with_zones(rides: DataFrame, zones: DataFrame) -> DataFrame:
    """Trips with the borough and zone of both ends, null for unknown zones, and `date`, the day of drop-off.

    rides: columns of `trips`.
    zones: LocationID, Borough, Zone.
    """
    ends = {
        end: zones.select(
            F.col("LocationID").alias(f"{end}LocationID"), F.col("Borough").alias(f"{end}Borough"), F.col("Zone").alias(f"{end}Zone")
        )
        for end in ("PU", "DO")
    }
    return (
        rides.drop("fingerprint")
        .join(F.broadcast(ends["PU"]), "PULocationID", how="left")
        .join(F.broadcast(ends["DO"]), "DOLocationID", how="left")
        .withColumn("date", F.to_date("dropoff"))
    )


def unusable(records: DataFrame, future: str) -> DataFrame:
    """Dead letters: records that cannot be used, or only in part, and trips with a drop-off further ahead than `future`.

    records: columns of sources.kafka.RECORD.
    Returns the columns of `dead_letters`.
    """
    fields = fields_of(TRIP)

    def reason(read: Column) -> Column:
        pickup_ms, dropoff_ms = (_ms(read, name) for name in _TIMES)
        of_a_part = F.coalesce(
            flaw(_text(), read, fields),
            F.when(pickup_ms.isNotNull() & _timestamp(pickup_ms).isNull(), "lpep_pickup_datetime is not of the years 1970 to 9999"),
        )
        return F.coalesce(
            F.when(read.isNull(), json_reason(_text())),
            F.when(F.col("clock").isNull(), NO_CLOCK),
            misfit(read["document"], T.StructType([fields["lpep_dropoff_datetime"]]), may_be_rounded(_text())),
            _time_reason(dropoff_ms, future),
            F.concat(of_a_part, F.lit("; the rest was used")),
        )

    # Spark parses the trip once when it is a lambda's argument, and once per mention otherwise.
    return dead_letters(records, F.transform(F.array(_read()), reason)[0])


def _text() -> Column:
    return F.col("value").cast("string")


def _read() -> Column:
    """The trip in a value."""
    return reading(_text(), fields_of(TRIP))


def _ms(read: Column, name: str) -> Column:
    return number(read["document"][name], T.LongType(), may_be_rounded(_text()))


def _time_reason(dropoff_ms: Column, future: str) -> Column:
    return (
        F.when(dropoff_ms.isNull(), "no lpep_dropoff_datetime")
        .when(dropoff_ms > F.unix_millis(latest_event(future)), "lpep_dropoff_datetime is in the future")
        .when(dropoff_ms < 0, "lpep_dropoff_datetime is before 1970")
    )


def _timestamp(milliseconds: Column) -> Column:
    # The conversion fails on overflow, and would stop the query.
    plausible = milliseconds.between(0, 1000 * YEAR_10000 - 1)
    return F.when(plausible, F.timestamp_millis(milliseconds))


def queries(settings: Settings) -> tuple[Query, ...]:
    """The queries of this domain, with the window slide and the future limit from `settings`."""
    source = KafkaTopic(NYC_TAXI.name)
    decode = partial(trips, future=settings.future)
    return (
        Query(
            "taxi-borough-stats",
            source=source,
            decode=decode,
            watermark=Watermark("dropoff"),
            transform=partial(borough_stats, window=settings.taxi_window, slide=settings.taxi_slide or settings.taxi_window),
            static_tables=(ZONES,),
            sink=CompactedTopic(TAXI_BOROUGH_STATS, key=("borough", "window")),
            mode="update",
            version=2,
        ),
        Query(
            "taxi-flows",
            source=source,
            decode=decode,
            watermark=Watermark("dropoff"),
            transform=partial(flows, window=settings.taxi_window),
            static_tables=(ZONES,),
            sink=CompactedTopic(TAXI_FLOWS, key=("pickup_borough", "dropoff_borough", "window")),
            mode="update",
            on_request=True,
        ),
        Query(
            "taxi-zone-sessions",
            source=source,
            decode=decode,
            watermark=Watermark("dropoff"),
            transform=zone_sessions,
            static_tables=(ZONES,),
            sink=CompactedTopic(TAXI_ZONE_SESSIONS, key=("zone_id", "window")),
            mode="append",
            on_request=True,
        ),
        Query(
            "taxi-zone-sessions-early",
            source=source,
            decode=decode,
            watermark=Watermark("dropoff"),
            transform=zone_sessions_early,
            has_timers=True,
            static_tables=(ZONES,),
            sink=CompactedTopic(TAXI_ZONE_SESSIONS_EARLY, key=("started", "zone_id")),
            mode="update",
            on_request=True,
        ),
        Query(
            "taxi-archive",
            source=source,
            decode=decode,
            transform=with_zones,
            static_tables=(ZONES,),
            sink=ParquetArchive("taxi/trips", partition_by="date"),
            trigger_seconds=30,
        ),
        Query(
            "taxi-dead-letters",
            source=source,
            decode=partial(unusable, future=settings.future),
            sink=DeadLetterTopic(),
            trigger_seconds=10,
        ),
    )
