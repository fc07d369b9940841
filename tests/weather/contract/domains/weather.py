"""Weather stations: the average temperature per city and hour."""

from contract.domains.domain import Domain
from contract.topics import A_WEEK, Topic, compacted_topic
from infrastructure.rows import Count, Fields, Number, Window

READINGS = Topic("weather-readings", partitions=3, config=A_WEEK, is_source=True)
"""Key: station, UTF-8.
Value: JSON {"station", "time", "celsius"}: one reading; time in ISO 8601, UTC.
"""


class CityStats(Fields):
    """The temperature of a city in an hour."""

    city: str
    window: Window
    readings: Count
    celsius_avg: Number


CITY_STATS = compacted_topic("weather-city-stats", CityStats, has_windows=True, counted="readings")
"""Key: canonical JSON {"city","window":{"end","start"}}, UTC. Value: CityStats, JSON, the whole row."""
DOMAIN = Domain(
    name="weather",
    title="Weather",
    topics=(READINGS, CITY_STATS),
    demo=("--rate", "20"),
)
