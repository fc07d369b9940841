"""NYC green taxi: trips, fares and tips per borough and hour."""

from contract.domains.domain import Domain, Report
from contract.topics import A_WEEK, Topic, compacted_topic

NYC_TAXI = Topic("nyc-taxi", partitions=3, config=A_WEEK, is_source=True)
"""Key: PULocationID of the trip as decimal digits, UTF-8, null if the trip has none; orders a zone's trips. Readers do not rely on it.
Value: one green taxi trip, JSON of TLC's columns; times are ms since 1970 of New York's wall clock, taken as if it were UTC.
"""

TAXI_BOROUGH_STATS = compacted_topic("taxi-borough-stats", has_windows=True)
"""Key: canonical JSON {"borough","window":{"end","start"}}, UTC.
Value: JSON {"borough", "window": {"start", "end"}, "trips", "passenger_count_avg"}, and "_sum" and "_avg" of each of trip_distance,
fare_amount, tip_amount, total_amount: the whole row.
"""

TAXI_FLOWS = compacted_topic("taxi-flows", has_windows=True)
"""Key: canonical JSON {"dropoff_borough","pickup_borough","window":{"end","start"}}, UTC.
Value: JSON {"pickup_borough", "dropoff_borough", "window": {"start", "end"}, "trips"}: the whole row.
"""

TAXI_ZONE_SESSIONS = compacted_topic("taxi-zone-sessions", has_windows=True)
"""Key: canonical JSON {"window":{"end","start"},"zone_id"}, UTC; start is the first drop-off of the session, end the last one plus the
gap.
Value: JSON {"zone_id", "borough", "zone", "window": {"start", "end"}, "trips", "fare_amount_sum", "total_amount_sum"}: the whole row.
"""

TAXI_ZONE_SESSIONS_EARLY = compacted_topic("taxi-zone-sessions-early", has_windows=True)
"""Key: canonical JSON {"started","zone_id"}, UTC; started is the first drop-off of the session.
Value: JSON {"started", "zone_id", "borough", "zone", "window": {"start", "end"}, "trips", "fare_amount_sum", "total_amount_sum"}: the
session so far, the whole row.
"""

DOMAIN = Domain(
    name="taxi",
    title="NYC green taxi",
    topics=(NYC_TAXI, TAXI_BOROUGH_STATS, TAXI_FLOWS, TAXI_ZONE_SESSIONS, TAXI_ZONE_SESSIONS_EARLY),
    reports={
        "taxi-borough-stats": Report(TAXI_BOROUGH_STATS, group=("borough",), counted="trips"),
        "taxi-flows": Report(TAXI_FLOWS, group=("pickup_borough", "dropoff_borough"), counted="trips"),
        "taxi-zone-sessions": Report(TAXI_ZONE_SESSIONS, group=("zone_id",), counted="trips"),
        "taxi-zone-sessions-early": Report(TAXI_ZONE_SESSIONS_EARLY, group=("zone_id",), counted="trips"),
    },
    demo=("--continue", "--start", "2024-03-01T00:00:00Z", "--speed-up", "600", "--odd", "0.005"),
)
