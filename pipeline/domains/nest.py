"""Nest security cameras: people seen per zip code and window of time, from Works with Nest documents.

A document reports one home: devices{cameras{id: camera}}. A camera's `last_event` describes what it saw last. Several documents
may report the same event, so a sighting is identified by device_id and start_time, and counts once.

This file holds the count, the archive and the dead letters; the other queries on these documents are in the files nest_*.py beside it.
"""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract.domains.nest import NEST_CAMERA_STATS, NEST_LOGS
from infrastructure.settings import Settings
from pipeline.domains import nest_activity, nest_devices, nest_status
from pipeline.domains.nest_documents import (
    DEVICE_LOCATIONS,
    SIGHTING,
    devices_in,
    devices_of,
    first_misfit,
    map_type,
    report_columns,
    sightings,
    too_long_id,
)
from pipeline.formats.json_text import json_reason, parsed
from pipeline.formats.json_values import time
from pipeline.query import Query
from pipeline.sinks.archives import ParquetArchive
from pipeline.sinks.dead_letters import DeadLetterTopic, dead_letters
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.files import Files
from pipeline.sources.kafka import NO_CLOCK, ORIGIN, KafkaTopic, latest_event
from pipeline.sources.static_tables import UNKNOWN, fields_of
from pipeline.sources.watermarks import Watermark

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


def camera_stats(sightings: DataFrame, locations: DataFrame, window: str = "1 hour") -> DataFrame:
    """People seen per zip code and window.

    sightings: device_id, start_time; duplicates are removed.
    locations: device_id, zip_code; unique by device_id.
    window: the length of the windows.
    Returns zip_code, window{start, end}, count (long). The window is that of start_time. Cameras without a location count as "unknown".
    """
    return (
        sightings.dropDuplicates(list(SIGHTING))
        .join(F.broadcast(locations), "device_id", how="left")
        .groupBy(F.coalesce("zip_code", F.lit(UNKNOWN)).alias("zip_code"), F.window("start_time", window))
        .count()
        .select("zip_code", "window", "count")
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
        devices_of(records, "cameras", CAMERA)
        .where(F.col("device").isNotNull())
        .select(*ORIGIN, *report_columns(), "device_id", audio, *(f"device.{name}" for name in fields))
    )


def unusable(records: DataFrame, future: str) -> DataFrame:
    """Dead letters: records that cannot be used, or only in part.

    records: columns of sources.kafka.RECORD.
    future: how far an event may be ahead of its record, e.g. "10 minutes".
    Returns the columns of `dead_letters`. A document without cameras is valid. A document with a field of the wrong type, a
    person without start_time, an event that is too far ahead, or a device of which `nest_devices.reason` says so is a dead letter, but the
    rest of it is used.
    """
    text = F.col("value").cast("string")
    reading = parsed(text, f"devices struct<cameras: {map_type(fields_of(CAMERA))}, {nest_devices.read_types()}>")
    # Spark parses the document once when it is a lambda's argument, and once per mention otherwise.
    return dead_letters(records, F.transform(F.array(reading), lambda read: _reason(text, read, future))[0])


def _reason(text: Column, read: Column, future: str) -> Column:
    devices = read["document"]["devices"]
    cameras = devices_in(devices["cameras"])
    in_future = F.exists(cameras, lambda camera: time(camera["last_event"]["start_time"]) > latest_event(future))
    timeless = F.exists(cameras, lambda camera: camera["last_event"]["has_person"] & camera["last_event"]["start_time"].isNull())
    of_a_part = F.coalesce(
        F.when(in_future, "start_time is in the future"),
        first_misfit(cameras, fields_of(CAMERA), F.lit(False)),  # noqa: FBT003 - it has no numbers
        too_long_id(devices["cameras"]),
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
    source = Files.of(settings.nest_source) if settings.nest_source else KafkaTopic(NEST_LOGS.name)
    return (
        Query(
            "nest-camera-stats",
            source=source,
            decode=partial(sightings, future=settings.future),
            watermark=Watermark("start_time"),
            transform=partial(camera_stats, window=settings.nest_window),
            static_tables=(DEVICE_LOCATIONS,),
            sink=CompactedTopic(NEST_CAMERA_STATS, key=("zip_code", "window")),
            mode="update",
        ),
        *nest_status.queries(source, settings),
        *nest_activity.queries(source, settings),
        Query(
            "nest-archive",
            source=source,
            decode=cameras,
            sink=ParquetArchive(
                "nest/cameras",
                partition_by="date",
                event_key=("device_id", "last_event.start_time"),
                is_event="last_event.has_person and last_event.start_time is not null",
            ),
            trigger_seconds=30,
        ),
        *nest_devices.queries(source, settings),
        Query(
            "nest-dead-letters",
            source=source,
            decode=partial(unusable, future=settings.future),
            sink=DeadLetterTopic(),
            trigger_seconds=10,
        ),
    )
