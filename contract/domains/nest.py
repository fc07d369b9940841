"""Nest devices: people seen by cameras per zip code and window of time, which cameras are offline, and how warm it is in the homes."""

from typing import Literal

from contract.domains.domain import Domain
from contract.topics import A_WEEK, COMPACTED, MAX_RECORD_BYTES, Topic, compacted_topic
from infrastructure.rows import Count, Fields, Number, Time, Window

NEST_LOGS = Topic("nest-logs", partitions=3, config={**A_WEEK, "max.message.bytes": str(MAX_RECORD_BYTES)}, is_source=True)
"""Key: structure_id of the home that reports, UTF-8; orders a home's documents. Readers do not rely on it.
Value: one Works-with-Nest document, JSON: metadata, devices{cameras{id: camera}, thermostats{...}, smoke_co_alarms{...}}, structures.
"""


class CameraStats(Fields):
    """People seen in a zip code ("unknown" without a location) and window, an hour by default."""

    zip_code: str
    window: Window
    count: Count


NEST_CAMERA_STATS = compacted_topic("nest-camera-stats", CameraStats, has_windows=True, counted="count")
"""Key: canonical JSON {"window":{"end","start"},"zip_code"}, UTC. Value: CameraStats, JSON, the whole row."""


class Crowd(Fields):
    """When as many people as `crowd` had been seen in a zip code and window, an hour by default."""

    zip_code: str
    window: Window
    crowd: Count
    reached_at: Time


NEST_CROWDS = compacted_topic("nest-crowds", Crowd, has_windows=True, counted="crowd")
"""Key: canonical JSON {"window":{"end","start"},"zip_code"}, UTC. Value: Crowd, JSON."""


class CameraStatus(Fields):
    """A camera as of its last change of state. reason: why it is offline. incident, first_seen: see pipeline.state.cameras."""

    device_id: str
    zip_code: str
    state: Literal["online", "offline"]
    reason: Literal["is_online is false", "silent"] | None
    since: Time
    last_seen: Time
    last_sighting: Time | None = None
    alert: Literal["offline", "back", "flapping"] | None = None
    incident: Time | None = None
    first_seen: Time | None = None


NEST_CAMERA_STATUS = compacted_topic("nest-camera-status", CameraStatus)
"""Key: canonical JSON {"device_id"}. Value: CameraStatus, JSON."""


class CameraAlert(Fields):
    """The last alert of an incident, which begins when a camera that was steady goes offline."""

    device_id: str
    zip_code: str
    alert: Literal["offline", "back", "flapping"]
    incident: Time | None = None
    state: Literal["online", "offline"] | None = None
    reason: Literal["is_online is false", "silent"] | None = None
    since: Time


NEST_CAMERA_ALERTS = Topic(
    "nest-camera-alerts",
    partitions=1,
    config={**COMPACTED, "cleanup.policy": "compact,delete", "retention.ms": str(30 * 24 * 3_600_000)},
    row=CameraAlert,
    written_by=NEST_CAMERA_STATUS.query,
)
"""Key: canonical JSON {"device_id","incident"}, UTC. Value: CameraAlert, JSON."""


class CameraActivity(Fields):
    """Since when an active camera has seen people, and when it last did."""

    device_id: str
    zip_code: str
    first_activity: Time
    last_activity: Time
    sightings: Count


NEST_CAMERA_ACTIVITY = compacted_topic("nest-camera-activity", CameraActivity, counted="sightings")
"""Key: canonical JSON {"device_id"}. Value: CameraActivity, JSON."""


class Temperatures(Fields):
    """Temperatures that the thermostats of a home ("unknown" without one) measured in a window, in degrees Celsius."""

    structure_id: str
    window: Window
    readings: Count
    ambient_temperature_c_avg: Number
    ambient_temperature_c_min: Number
    ambient_temperature_c_max: Number


NEST_TEMPERATURES = compacted_topic("nest-temperatures", Temperatures, has_windows=True, counted="readings")
"""Key: canonical JSON {"structure_id","window":{"end","start"}}, UTC. Value: Temperatures, JSON, the whole row."""

DOMAIN = Domain(
    name="nest",
    title="Nest cameras",
    topics=(NEST_LOGS, NEST_CAMERA_STATS, NEST_CROWDS, NEST_CAMERA_STATUS, NEST_CAMERA_ALERTS, NEST_CAMERA_ACTIVITY, NEST_TEMPERATURES),
    demo=("--continue", "--rate", "100", "--speed-up", "60"),
)
