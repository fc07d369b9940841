"""NYC green taxi: trips, fares and tips per borough and window of time."""

from contract.domains.domain import Domain
from contract.topics import A_WEEK, Topic, compacted_topic
from infrastructure.rows import Count, Fields, Integer, Number, Time, Window

NYC_TAXI = Topic("nyc-taxi", partitions=3, config=A_WEEK, is_source=True)
"""Key: PULocationID of the trip as decimal digits, UTF-8, null if the trip has none; orders a zone's trips. Readers do not rely on it.
Value: one green taxi trip, JSON of TLC's columns; times are ms since 1970 of New York's wall clock, taken as if it were UTC.
"""


class BoroughStats(Fields):
    """Trips from a borough ("Unknown" without one) in a window, an hour by default. Sums and averages in miles and dollars; None: no trip states any."""

    borough: str
    window: Window
    trips: Count
    passenger_count_avg: Number | None
    trip_distance_sum: Number | None
    trip_distance_avg: Number | None
    fare_amount_sum: Number | None
    fare_amount_avg: Number | None
    tip_amount_sum: Number | None
    tip_amount_avg: Number | None
    total_amount_sum: Number | None
    total_amount_avg: Number | None


TAXI_BOROUGH_STATS = compacted_topic("taxi-borough-stats", BoroughStats, has_windows=True, counted="trips")
"""Key: canonical JSON {"borough","window":{"end","start"}}, UTC. Value: BoroughStats, JSON, the whole row."""


class Flow(Fields):
    """Trips from one borough to another in a window, an hour by default."""

    pickup_borough: str
    dropoff_borough: str
    window: Window
    trips: Count


TAXI_FLOWS = compacted_topic("taxi-flows", Flow, has_windows=True, counted="trips")
"""Key: canonical JSON {"dropoff_borough","pickup_borough","window":{"end","start"}}, UTC. Value: Flow, JSON, the whole row."""


class ZoneSession(Fields):
    """A session of a pick-up zone. window: from its first drop-off to the last one plus the gap. Sums in dollars; None: no trip states any."""

    zone_id: Integer
    borough: str
    zone: str
    window: Window
    trips: Count
    fare_amount_sum: Number | None
    total_amount_sum: Number | None


TAXI_ZONE_SESSIONS = compacted_topic("taxi-zone-sessions", ZoneSession, has_windows=True, counted="trips")
"""Key: canonical JSON {"window":{"end","start"},"zone_id"}, UTC. Value: ZoneSession, JSON, the whole row."""


class ZoneSessionSoFar(ZoneSession):
    """A session that has not ended. started: its first drop-off."""

    started: Time


TAXI_ZONE_SESSIONS_EARLY = compacted_topic("taxi-zone-sessions-early", ZoneSessionSoFar, has_windows=True, counted="trips")
"""Key: canonical JSON {"started","zone_id"}, UTC. Value: ZoneSessionSoFar, JSON, the whole row."""

DOMAIN = Domain(
    name="taxi",
    title="NYC green taxi",
    topics=(NYC_TAXI, TAXI_BOROUGH_STATS, TAXI_FLOWS, TAXI_ZONE_SESSIONS, TAXI_ZONE_SESSIONS_EARLY),
    demo=("--continue", "--start", "2024-03-01T00:00:00Z", "--speed-up", "600", "--odd", "0.005"),
)
