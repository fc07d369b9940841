"""Nest cameras: people seen per zip code and hour."""

from contract.domains.domain import Domain, Report
from contract.topics import A_WEEK, COMPACTED, LARGEST_RECORD_BYTES, Topic

NEST_LOGS = Topic(
    name="nest-logs",
    partitions=3,
    key="structure_id of the home that reports, UTF-8; orders a home's documents. Readers do not rely on it",
    value="one Works-with-Nest document, JSON: metadata, devices{cameras{id: camera}}, structures",
    config={**A_WEEK, "max.message.bytes": str(LARGEST_RECORD_BYTES)},
    is_source=True,
)

NEST_CAMERA_STATS = Topic(
    name="nest-camera-stats",
    partitions=1,
    key='canonical JSON {"window":{"end","start"},"zip_code"}, UTC',
    value='JSON {"zip_code", "window": {"start", "end"}, "count"}: people seen in that zip code and hour, the whole row',
    config=COMPACTED,
)

DOMAIN = Domain(
    name="nest",
    title="Nest cameras",
    topics=(NEST_LOGS, NEST_CAMERA_STATS),
    reports={"nest-camera-stats": Report(NEST_CAMERA_STATS, group=("zip_code",), counted="count")},
    demo=("--continue", "--rate", "100", "--speed-up", "60"),
)
