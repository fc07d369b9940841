"""Which cameras of Nest are offline: what their documents report, and the query that follows each camera (pipeline/state)."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract.domains.nest import NEST_CAMERA_ALERTS, NEST_CAMERA_STATUS
from infrastructure import durations
from infrastructure.settings import Settings
from pipeline.domains.nest_documents import DEVICE_LOCATIONS, devices_of
from pipeline.query import Query
from pipeline.sinks.topics import CompactedTopicWithAlerts
from pipeline.sources.files import Files
from pipeline.sources.kafka import ORIGIN, KafkaTopic, latest_event
from pipeline.sources.watermarks import Watermark
from pipeline.state.cameras import camera_status
from pipeline.state.offline import Limits

_REPORT = "device_id string, last_event struct<has_person: boolean, start_time: timestamp>, is_online boolean"
_SKEW = "1 hour"
"""A camera is silent when the watermark says so. An idle partition that held the watermark back for a week would hide offline cameras for a week."""


def reports(records: DataFrame, future: str) -> DataFrame:
    """Which cameras were heard of, one row per document and camera.

    A camera is heard of when a document contains it, at the time of the document: its record's clock (sources/kafka.py). That is when
    the document was sent, so a reader of the wall clock expects it, and a simulation's own clock is followed. The times within a document
    say when the camera last saw something, which may be hours ago although it is well. A camera is online unless it says `is_online` false.

    records: columns of sources.kafka.RECORD.
    future: how far an event may be ahead of its record, e.g. "10 minutes"; a sighting further ahead is left out.
    Returns topic, partition, offset, device_id, at (timestamp, whole ms), is_online, sighting (timestamp; null if the document has none).
    """
    start_time = F.col("device.last_event.start_time")
    is_sighting = F.col("device.last_event.has_person") & (start_time <= latest_event(future))
    return (
        devices_of(records, "cameras", _REPORT)
        .where(F.col("device").isNotNull())
        .select(
            *ORIGIN,
            "device_id",
            F.timestamp_millis(F.unix_millis("clock")).alias("at"),
            F.coalesce("device.is_online", F.lit(True)).alias("is_online"),  # noqa: FBT003
            F.when(is_sighting, start_time).alias("sighting"),
        )
    )


def queries(source: KafkaTopic | Files, settings: Settings) -> tuple[Query, ...]:
    limits = Limits(
        silence_ms=round(durations.seconds(settings.offline_after, "STREAMGAUGE_OFFLINE_AFTER") * 1000),
        forget_ms=round(durations.seconds(settings.result_retention, "STREAMGAUGE_RESULT_RETENTION") * 1000),
    )
    return (
        Query(
            "nest-camera-status",
            source=source,
            decode=partial(reports, future=settings.future),
            watermark=Watermark("at", skew=_SKEW),
            transform=partial(camera_status, limits=limits),
            has_timers=True,
            static_tables=(DEVICE_LOCATIONS,),
            sink=CompactedTopicWithAlerts(
                NEST_CAMERA_STATUS,
                key=("device_id",),
                alerts=NEST_CAMERA_ALERTS,
                alert_key=("device_id", "incident"),
            ),
            mode="update",
            trigger_seconds=5,
            version=2,
        ),
    )
