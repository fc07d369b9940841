"""Nest security cameras: people seen per zip code and hour, from Works with Nest documents.

A document reports one home: devices{cameras{id: camera}}. A camera's `last_event` describes what it saw last. Several documents
may report the same event, so a sighting is identified by device_id and start_time, and counts once.
"""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract import durations
from contract.domains.nest import NEST_CAMERA_ACTIVITY, NEST_CAMERA_ALERTS, NEST_CAMERA_STATS, NEST_CAMERA_STATUS, NEST_CROWDS, NEST_LOGS
from contract.settings import Settings
from pipeline.domains import nest_devices
from pipeline.formats.dead_letters import dead_letters
from pipeline.formats.json_text import json_reason, parsed
from pipeline.formats.json_values import time
from pipeline.formats.record_clock import NO_CLOCK, latest_event
from pipeline.query import Query
from pipeline.sinks.archives import ParquetArchive
from pipeline.sinks.topics import CompactedTopic, CompactedTopicWithAlerts, DeadLetterTopic
from pipeline.sources.files import Files
from pipeline.sources.kafka import ORIGIN
from pipeline.sources.static_tables import UNKNOWN, StaticTable, fields_of
from pipeline.sources.topic import KafkaTopic
from pipeline.state.cameras import camera_status
from pipeline.state.early_sessions import early_sessions
from pipeline.state.offline import Limits

DEVICE_LOCATIONS = StaticTable("device_locations.csv", schema="device_id string, zip_code string", unique="device_id")

LAST_EVENT = (
    "has_sound boolean, has_motion boolean, has_person boolean, start_time timestamp, end_time timestamp, urls_expire_time timestamp, "
    "web_url string, app_url string, image_url string, animated_image_url string, activity_zone_ids array<string>"
)
# The API reference spells it is_audio_input_enabled; an article about it, and therefore some recordings, is_audio_input_enable.
CAMERA = (
    "device_id string, software_version string, structure_id string, where_id string, where_name string, name string, name_long string, "
    "is_online boolean, is_streaming boolean, is_audio_input_enabled boolean, is_audio_input_enable boolean, last_is_online_change timestamp, "
    "is_video_history_enabled boolean, web_url string, app_url string, is_public_share_enabled boolean, "
    "activity_zones array<struct<name: string, id: string>>, public_share_url string, snapshot_url string, "
    f"last_event struct<{LAST_EVENT}>"
)
DOCUMENT = f"devices struct<cameras: map<string, struct<{CAMERA}>>>"
_WHAT_SIGHTINGS_USE = "device_id string, last_event struct<has_person: boolean, start_time: timestamp>"
_WHAT_REPORTS_USE = f"{_WHAT_SIGHTINGS_USE}, is_online boolean"
_EVENT_KEY = ("device_id", "start_time")
_SKEW = "1 hour"
"""A camera is silent when the watermark says so. An idle partition that held the watermark back for a week would hide offline cameras for a week."""


def sightings(records: DataFrame, future: str) -> DataFrame:
    """Sightings of people, one row per report: a sighting that is reported twice gives two rows.

    records: columns of sources.kafka.RECORD.
    future: how far an event may be ahead of its record, e.g. "10 minutes"; events further ahead are dropped.
    Returns topic, partition, offset, device_id, start_time. Parses only the fields it uses: parsing takes most of a batch's time.
    """
    start_time = F.col("device.last_event.start_time")
    is_placed = start_time <= latest_event(future)  # null without a start_time
    return (
        nest_devices.each_of(records, "cameras", _WHAT_SIGHTINGS_USE)
        .where(F.col("device.last_event.has_person") & is_placed)
        .select(*ORIGIN, "device_id", start_time.alias("start_time"))
    )


def camera_stats(seen: DataFrame, locations: DataFrame) -> DataFrame:
    """People seen per zip code and hour.

    seen: device_id, start_time; duplicates are removed.
    locations: device_id, zip_code; unique by device_id.
    Returns zip_code, window{start, end}, count (long). The window is the hour of start_time. Cameras without a location count as "unknown".
    """
    return (
        _located(seen, locations)
        .groupBy(F.coalesce("zip_code", F.lit(UNKNOWN)).alias("zip_code"), F.window("start_time", "1 hour"))
        .count()
        .select("zip_code", "window", "count")
    )


def crowds(seen: DataFrame, locations: DataFrame, crowd: int) -> DataFrame:
    """When the number of people seen in a zip code and hour reached `crowd`; no row for an hour in which it did not.

    seen, locations: as for camera_stats. Returns zip_code, window{start, end}, crowd (int), reached_at (timestamp, the event time of the
    sighting that made the crowd; one that arrives later and happened earlier moves it back). The state holds all times of an hour.
    """
    times = F.sort_array(F.collect_list("start_time"))
    return (
        _located(seen, locations)
        .withColumn("zip_code", F.coalesce("zip_code", F.lit(UNKNOWN)))
        .groupBy("zip_code", F.window("start_time", "1 hour"))
        .agg(F.get(times, F.lit(crowd - 1)).alias("reached_at"))
        .where(F.col("reached_at").isNotNull())
        .select("zip_code", "window", F.lit(crowd).alias("crowd"), "reached_at")
    )


def camera_activity(seen: DataFrame, locations: DataFrame, *, timeout_ms: int, until_ms: int | None = None) -> DataFrame:
    """When each camera began to see people, and when it last did; the beginning is the first sighting after `timeout_ms` without one.

    seen, locations: as for camera_stats. until_ms: see Query.has_timers.
    Returns device_id, zip_code, first_activity, last_activity (timestamps, whole ms), sightings (long). If a camera has seen nobody for
    longer than `timeout_ms`, all columns but device_id are null.
    """
    at_ms = F.unix_millis("start_time")
    if until_ms is None:
        event_id, totals = F.unix_micros("start_time").cast("string"), F.array().cast("array<decimal(22, 2)>")
        sightings = seen.select("device_id", "start_time", at_ms.alias("at_ms"), event_id.alias("id"), totals.alias("totals"))
        newest = early_sessions(sightings, "device_id", timeout_ms, newest_only=True)
    else:
        once = seen.dropDuplicates(list(_EVENT_KEY))
        sessions = once.groupBy("device_id", F.session_window(F.timestamp_millis(at_ms), f"{timeout_ms} milliseconds").alias("window"))
        spans = sessions.agg(F.min(at_ms).alias("start_ms"), F.max(at_ms).alias("last_ms"), F.count("*").alias("events"))
        newest = (
            spans.groupBy("device_id").agg(F.max(F.struct("start_ms", "last_ms", "events")).alias("newest")).select("device_id", "newest.*")
        )
        newest = newest.where(F.col("last_ms") + timeout_ms >= until_ms)
    is_there = F.col("events").isNotNull()
    first, last = (F.timestamp_millis(F.when(is_there, F.col(name))) for name in ("start_ms", "last_ms"))
    return newest.join(F.broadcast(locations), "device_id", how="left").select(
        "device_id",
        F.when(is_there, F.coalesce("zip_code", F.lit(UNKNOWN))).alias("zip_code"),
        first.alias("first_activity"),
        last.alias("last_activity"),
        F.col("events").alias("sightings"),
    )


def _located(seen: DataFrame, locations: DataFrame) -> DataFrame:
    return seen.dropDuplicates(list(_EVENT_KEY)).join(F.broadcast(locations), "device_id", how="left")


def reports(records: DataFrame, future: str) -> DataFrame:
    """Which cameras were heard of, one row per document and camera.

    A camera is heard of when a document contains it, at the time of the document: its record's clock (formats/record_clock.py). That is when
    the document was sent, so a reader of the wall clock expects it, and a simulation's own clock is followed. The times within a document
    say when the camera last saw something, which may be hours ago although it is well. A camera is online unless it says `is_online` false.

    records: columns of sources.kafka.RECORD.
    future: how far an event may be ahead of its record, e.g. "10 minutes"; a sighting further ahead is left out.
    Returns topic, partition, offset, device_id, at (timestamp, whole ms), is_online, sighting (timestamp; null if the document has none).
    """
    start_time = F.col("device.last_event.start_time")
    is_sighting = F.col("device.last_event.has_person") & (start_time <= latest_event(future))
    return (
        nest_devices.each_of(records, "cameras", _WHAT_REPORTS_USE)
        .where(F.col("device").isNotNull())
        .select(
            *ORIGIN,
            "device_id",
            F.timestamp_millis(F.unix_millis("clock")).alias("at"),
            F.coalesce("device.is_online", F.lit(True)).alias("is_online"),  # noqa: FBT003
            F.when(is_sighting, start_time).alias("sighting"),
        )
    )


def cameras(records: DataFrame) -> DataFrame:
    """All cameras of all documents, one row each, flat except for last_event and activity_zones.

    records: columns of sources.kafka.RECORD.
    Returns topic, partition, offset, reported_at (the Kafka timestamp), date (the UTC day of reported_at), and the columns of CAMERA, with
    both spellings of is_audio_input_enabled merged into one.
    """
    fields = [name for name in fields_of(CAMERA).names if not name.startswith("is_audio_input") and name != "device_id"]
    audio = F.coalesce("device.is_audio_input_enabled", "device.is_audio_input_enable").alias("is_audio_input_enabled")
    return (
        nest_devices.each_of(records, "cameras", CAMERA)
        .where(F.col("device").isNotNull())
        .select(*ORIGIN, *nest_devices.reported(), "device_id", audio, *(f"device.{name}" for name in fields))
    )


def unusable(records: DataFrame, future: str) -> DataFrame:
    """Dead letters: records that cannot be used, or only in part.

    records: columns of sources.kafka.RECORD.
    future: how far an event may be ahead of its record, e.g. "10 minutes".
    Returns the columns of dead_letters.dead_letters. A document without cameras is valid. A document with a field of the wrong type, a
    person without start_time, an event that is too far ahead, or a device of which `nest_devices.reason` says so is a dead letter, but the
    rest of it is used.
    """
    text = F.col("value").cast("string")
    reading = parsed(text, f"devices struct<cameras: {nest_devices.map_of(fields_of(CAMERA))}, {nest_devices.read_types()}>")
    # Spark parses the document once when it is a lambda's argument, and once per mention otherwise.
    return dead_letters(records, F.transform(F.array(reading), lambda read: _reason(text, read, future))[0])


def _reason(text: Column, read: Column, future: str) -> Column:
    devices = read["document"]["devices"]
    cameras = nest_devices.each_in(devices["cameras"])
    in_future = F.exists(cameras, lambda camera: time(camera["last_event"]["start_time"]) > latest_event(future))
    timeless = F.exists(cameras, lambda camera: camera["last_event"]["has_person"] & camera["last_event"]["start_time"].isNull())
    of_a_part = F.coalesce(
        F.when(in_future, "start_time is in the future"),
        nest_devices.misfit_of_one(cameras, fields_of(CAMERA), F.lit(False)),  # noqa: FBT003 - it has no numbers
        nest_devices.long_id(devices["cameras"]),
        F.when(timeless, "a person without start_time"),
        nest_devices.reason(devices, text, future),
        F.when(read["misfits"], "a field is of another type"),
    )
    return F.coalesce(
        F.when(read.isNull(), json_reason(text)),
        F.when(F.col("clock").isNull(), NO_CLOCK),
        F.when(devices.isNull(), "no devices"),
        F.concat(of_a_part, F.lit("; the rest was used")),
    )


def queries(settings: Settings) -> tuple[Query, ...]:
    """The queries of this domain. They read the files of `settings.nest_source` if it is set, the topic otherwise."""
    limits = Limits(
        silence_ms=round(durations.seconds(settings.offline_after, "STREAMGAUGE_OFFLINE_AFTER") * 1000),
        forget_ms=round(durations.seconds(settings.result_retention, "STREAMGAUGE_RESULT_RETENTION") * 1000),
    )
    timeout_ms = round(durations.seconds(settings.inactive_after, "STREAMGAUGE_INACTIVE_AFTER") * 1000)
    query = partial(Query, source=Files.of(settings.nest_source) if settings.nest_source else KafkaTopic(NEST_LOGS.name))
    located = partial(query, static_tables=(DEVICE_LOCATIONS,), mode="update")
    seeing = partial(located, decode=partial(sightings, future=settings.future), event_time="start_time")
    return (
        seeing(
            "nest-camera-stats",
            transform=camera_stats,
            sink=CompactedTopic(NEST_CAMERA_STATS, key=("zip_code", "window")),
        ),
        seeing(
            "nest-crowds",
            transform=partial(crowds, crowd=settings.crowd),
            sink=CompactedTopic(NEST_CROWDS, key=("zip_code", "window")),
            on_request=True,
        ),
        located(
            "nest-camera-status",
            decode=partial(reports, future=settings.future),
            event_time="at",
            skew=_SKEW,
            has_timers=True,
            transform=partial(camera_status, limits=limits),
            sink=CompactedTopicWithAlerts(
                NEST_CAMERA_STATUS,
                key=("device_id",),
                alerts=NEST_CAMERA_ALERTS,
                alert_key=("device_id", "incident"),
                alert_columns=("device_id", "zip_code", "alert", "incident", "state", "reason", "since"),
            ),
            trigger_seconds=5,
            version=2,
        ),
        seeing(
            "nest-camera-activity",
            transform=partial(camera_activity, timeout_ms=timeout_ms),
            has_timers=True,
            sink=CompactedTopic(NEST_CAMERA_ACTIVITY, key=("device_id",)),
            on_request=True,
        ),
        query(
            "nest-archive",
            decode=cameras,
            sink=ParquetArchive(
                "nest/cameras",
                partition_by="date",
                event_key=("device_id", "last_event.start_time"),
                is_event="last_event.has_person and last_event.start_time is not null",
            ),
            trigger_seconds=30,
        ),
        *nest_devices.queries(query, settings.future),
        query("nest-dead-letters", decode=partial(unusable, future=settings.future), sink=DeadLetterTopic(), trigger_seconds=10),
    )
