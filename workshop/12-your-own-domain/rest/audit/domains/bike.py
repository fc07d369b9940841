"""What the results of bikes must be."""

from functools import partial

from contract.domains.bike import STATION_STATS, TRIPS

from audit.audited import Facts, Table
from audit.checks.dead_letters import DeadLetters
from audit.values.fields import flaws, read, values, when
from infrastructure.settings import Settings

TRIP = {"bike": "text", "station": "text", "ended_at": "moment", "minutes": "int"}

READ = f"""
    SELECT topic, partition, "offset", clock, {values("trip", TRIP.items())}, trip, is_object(document) AS is_object
    FROM (SELECT *, {read("document", TRIP)} AS trip FROM documents WHERE document IS NOT NULL)
"""

REASONS = f"""
    SELECT *, list_filter([
        {", ".join(flaws("trip", TRIP))}, {when("NOT is_object", "a field is of another type")},
        {", ".join(when(f"{name} IS NULL", f"no {name}") for name in ("bike", "station", "ended_at"))},
        {when("minutes < 0", "minutes is negative")},
        {when("ended_at > clock + INTERVAL '{future}'", "ended_at is in the future")}
    ], lambda reason: reason IS NOT NULL) AS reasons
    FROM trips
"""

STATS = """
    SELECT station, hour_of(ended_at) AS "window", count(*) AS trips, sum(minutes) AS minutes{facts}
    FROM counted
    GROUP BY ALL
"""


def audited(settings: Settings) -> tuple[Table | DeadLetters, ...]:
    """The results of the domain."""
    facts = partial(Facts, source=TRIPS.name, parameters={"future": settings.future}, steps={"trips": READ})
    return (
        Table(
            "bike-station-stats",
            STATION_STATS,
            facts("usable_trips", sql=f"FROM ({REASONS}) WHERE len(reasons) = 0"),
            event_time="ended_at",
            event_key=("bike", "ended_at"),
            key=("station", "window"),
            watermark=settings.watermark,
            sql=STATS,
            growing=("trips", "minutes"),
        ),
        DeadLetters(
            "bike-dead-letters",
            facts("bike_letters", sql=f'SELECT topic, partition, "offset", unnest(reasons) AS reason FROM ({REASONS})'),
        ),
    )
