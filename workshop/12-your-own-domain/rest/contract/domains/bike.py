"""Bikes: trips per station and hour."""

from contract.domains.domain import Domain
from contract.topics import A_WEEK, Topic, compacted_topic
from infrastructure.rows import Count, Fields, Window

TRIPS = Topic("bike-trips", partitions=3, config=A_WEEK, is_source=True)
"""Key: bike, UTF-8.
Value: JSON {"bike", "station", "ended_at", "minutes"}: a trip that has ended; ended_at in ISO 8601, UTC.
"""


class StationStats(Fields):
    """The trips that ended at a station in an hour. minutes: their sum, None if no trip has any."""

    station: str
    window: Window
    trips: Count
    minutes: Count | None


STATION_STATS = compacted_topic("bike-station-stats", StationStats, has_windows=True, counted="trips")
"""Key: canonical JSON {"station","window":{"end","start"}}, UTC. Value: StationStats, JSON, the whole row."""
DOMAIN = Domain(
    name="bike",
    title="Bikes",
    topics=(TRIPS, STATION_STATS),
    demo=("--continue", "--rate", "20"),
)
