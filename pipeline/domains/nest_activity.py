"""When people were seen by Nest cameras: crowds, and when each camera last saw somebody. The queries are on request."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract.domains.nest import NEST_CAMERA_ACTIVITY, NEST_CROWDS
from infrastructure import durations
from infrastructure.settings import Settings
from pipeline.domains.nest_documents import DEVICE_LOCATIONS, SIGHTING, sightings
from pipeline.query import Query
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.files import Files
from pipeline.sources.kafka import KafkaTopic
from pipeline.sources.static_tables import UNKNOWN
from pipeline.sources.watermarks import Watermark
from pipeline.state.early_sessions import early_sessions


def crowds(sightings: DataFrame, locations: DataFrame, crowd: int, window: str = "1 hour") -> DataFrame:
    """When the number of people seen in a zip code and window reached `crowd`; no row for a window in which it did not.

    sightings, locations, window: as for nest.camera_stats. Returns zip_code, window{start, end}, crowd (int), reached_at (timestamp, the event time of the
    sighting that made the crowd; one that arrives later and happened earlier moves it back). The state holds all times of a window.
    """
    times = F.sort_array(F.collect_list("start_time"))
    return (
        sightings.dropDuplicates(list(SIGHTING))
        .join(F.broadcast(locations), "device_id", how="left")
        .withColumn("zip_code", F.coalesce("zip_code", F.lit(UNKNOWN)))
        .groupBy("zip_code", F.window("start_time", window))
        .agg(F.get(times, F.lit(crowd - 1)).alias("reached_at"))
        .where(F.col("reached_at").isNotNull())
        .select("zip_code", "window", F.lit(crowd).alias("crowd"), "reached_at")
    )


def camera_activity(sightings: DataFrame, locations: DataFrame, *, timeout_ms: int) -> DataFrame:
    """When each camera began to see people, and when it last did; the beginning is the first sighting after `timeout_ms` without one.

    sightings, locations: as for nest.camera_stats.
    Returns device_id, zip_code, first_activity, last_activity (timestamps, whole ms), sightings (long). If a camera has seen nobody for
    longer than `timeout_ms`, all columns but device_id are null.
    """
    event_id, totals = F.unix_micros("start_time").cast("string"), F.array().cast("array<decimal(22, 2)>")
    at_ms = F.unix_millis("start_time")
    events = sightings.select("device_id", "start_time", at_ms.alias("at_ms"), event_id.alias("id"), totals.alias("totals"))
    newest = early_sessions(events, "device_id", timeout_ms, newest_only=True)
    is_active = F.col("events").isNotNull()
    first, last = (F.timestamp_millis(F.when(is_active, F.col(name))) for name in ("start_ms", "last_ms"))
    return newest.join(F.broadcast(locations), "device_id", how="left").select(
        "device_id",
        F.when(is_active, F.coalesce("zip_code", F.lit(UNKNOWN))).alias("zip_code"),
        first.alias("first_activity"),
        last.alias("last_activity"),
        F.col("events").alias("sightings"),
    )


def queries(source: KafkaTopic | Files, settings: Settings) -> tuple[Query, ...]:
    timeout_ms = round(durations.seconds(settings.inactive_after, "STREAMGAUGE_INACTIVE_AFTER") * 1000)
    return (
        Query(
            "nest-crowds",
            source=source,
            decode=partial(sightings, future=settings.future),
            watermark=Watermark("start_time"),
            transform=partial(crowds, crowd=settings.crowd, window=settings.nest_window),
            static_tables=(DEVICE_LOCATIONS,),
            sink=CompactedTopic(NEST_CROWDS, key=("zip_code", "window")),
            mode="update",
            on_request=True,
        ),
        Query(
            "nest-camera-activity",
            source=source,
            decode=partial(sightings, future=settings.future),
            watermark=Watermark("start_time"),
            transform=partial(camera_activity, timeout_ms=timeout_ms),
            has_timers=True,
            static_tables=(DEVICE_LOCATIONS,),
            sink=CompactedTopic(NEST_CAMERA_ACTIVITY, key=("device_id",)),
            mode="update",
            on_request=True,
        ),
    )
