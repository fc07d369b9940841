"""What the results of weather stations must be."""

from functools import partial

from contract.domains.weather import CITY_STATS, READINGS

from audit.audited import Facts, Table
from audit.checks.dead_letters import DeadLetters
from audit.values.fields import flaws, read, values, when
from infrastructure.settings import Settings

READING = {"station": "text", "time": "moment", "celsius": "decimal(5,1)"}

READ = f"""
    SELECT topic, partition, "offset", clock, {values("reading", READING.items())}, reading, is_object(document) AS is_object
    FROM (SELECT *, {read("document", READING)} AS reading FROM documents WHERE document IS NOT NULL)
"""

REASONS = f"""
    SELECT *, list_filter([
        {", ".join(flaws("reading", READING))}, {when("NOT is_object", "a field is of another type")},
        {when("time IS NULL", "no time")}, {when("time > clock + INTERVAL '{future}'", "time is in the future")}
    ], lambda reason: reason IS NOT NULL) AS reasons
    FROM readings
"""

STATS = """
    SELECT coalesce(city, 'unknown') AS city, hour_of(time) AS "window", count(*) AS readings, mean(sum(celsius), count(celsius), 5) AS celsius_avg{facts}
    FROM counted LEFT JOIN weather_stations USING (station)
    GROUP BY ALL
"""


def audited(settings: Settings) -> tuple[Table | DeadLetters, ...]:
    """The results of the domain."""
    facts = partial(Facts, source=READINGS.name, parameters={"future": settings.future}, steps={"readings": READ})
    return (
        Table(
            "weather-city-stats",
            CITY_STATS,
            facts("usable_readings", sql=f"FROM ({REASONS}) WHERE len(reasons) = 0"),
            event_time="time",
            event_key=("station", "time"),
            key=("city", "window"),
            watermark=settings.watermark,
            sql=STATS,
            growing=("readings",),
        ),
        DeadLetters(
            "weather-dead-letters",
            facts("weather_letters", sql=f'SELECT topic, partition, "offset", unnest(reasons) AS reason FROM ({REASONS})'),
        ),
    )
