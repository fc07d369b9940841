"""Nest devices: people seen by cameras per zip code and hour, which cameras are offline, and how warm it is in the homes."""

from contract.domains.domain import Domain, Report
from contract.topics import A_WEEK, COMPACTED, MAX_RECORD_BYTES, Topic, compacted_topic

NEST_LOGS = Topic("nest-logs", partitions=3, config={**A_WEEK, "max.message.bytes": str(MAX_RECORD_BYTES)}, is_source=True)
"""Key: structure_id of the home that reports, UTF-8; orders a home's documents. Readers do not rely on it.
Value: one Works-with-Nest document, JSON: metadata, devices{cameras{id: camera}, thermostats{...}, smoke_co_alarms{...}}, structures.
"""

NEST_CAMERA_STATS = compacted_topic("nest-camera-stats", has_windows=True)
"""Key: canonical JSON {"window":{"end","start"},"zip_code"}, UTC.
Value: JSON {"zip_code", "window": {"start", "end"}, "count"}: people seen in that zip code and hour, the whole row.
"""

NEST_CROWDS = compacted_topic("nest-crowds", has_windows=True)
"""Key: canonical JSON {"window":{"end","start"},"zip_code"}, UTC.
Value: JSON {"zip_code", "window": {"start", "end"}, "crowd", "reached_at"}: when as many people as `crowd` had been seen in that hour,
UTC.
"""

NEST_CAMERA_STATUS = compacted_topic("nest-camera-status")
"""Key: canonical JSON {"device_id"}.
Value: JSON {"device_id", "zip_code", "state": "online" | "offline", "reason": "is_online is false" | "silent" | null, "since",
"last_seen", "last_sighting", "alert": "offline" | "back" | "flapping" | null, "incident", "first_seen"}: the camera when its state last
changed, times in UTC.
"""

NEST_CAMERA_ALERTS = Topic(
    "nest-camera-alerts", partitions=1, config={**COMPACTED, "cleanup.policy": "compact,delete", "retention.ms": str(30 * 24 * 3_600_000)}
)
"""Key: canonical JSON {"device_id","incident"}, UTC: an incident begins when a camera that was steady goes offline.
Value: JSON {"device_id", "zip_code", "alert": "offline" | "back" | "flapping", "incident", "state", "reason", "since"}: its last alert.
"""

NEST_CAMERA_ACTIVITY = compacted_topic("nest-camera-activity")
"""Key: canonical JSON {"device_id"}.
Value: JSON {"device_id", "zip_code", "first_activity", "last_activity", "sightings"}: since when an active camera has seen people, and
when it last did, times in UTC.
"""

NEST_TEMPERATURES = compacted_topic("nest-temperatures", has_windows=True)
"""Key: canonical JSON {"structure_id","window":{"end","start"}}, UTC.
Value: JSON {"structure_id", "window": {"start", "end"}, "readings", "ambient_temperature_c_avg", "ambient_temperature_c_min",
"ambient_temperature_c_max"}: what the thermostats of that home read in that hour, the whole row.
"""

DOMAIN = Domain(
    name="nest",
    title="Nest cameras",
    topics=(NEST_LOGS, NEST_CAMERA_STATS, NEST_CROWDS, NEST_CAMERA_STATUS, NEST_CAMERA_ALERTS, NEST_CAMERA_ACTIVITY, NEST_TEMPERATURES),
    reports={
        "nest-camera-stats": Report(NEST_CAMERA_STATS, group=("zip_code",), counted="count"),
        "nest-temperatures": Report(NEST_TEMPERATURES, group=("structure_id",), counted="readings"),
    },
    demo=("--continue", "--rate", "100", "--speed-up", "60"),
)
