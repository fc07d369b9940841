"""Weather stations: the average temperature per city and hour."""

from contract.domains.domain import Domain, Report
from contract.topics import A_WEEK, Topic, compacted_topic

READINGS = Topic("weather-readings", partitions=3, config=A_WEEK, is_source=True)
"""Key: station, UTF-8.
Value: JSON {"station", "time", "celsius"}: one reading; time in ISO 8601, UTC.
"""
CITY_STATS = compacted_topic("weather-city-stats", has_windows=True)
"""Key: canonical JSON {"city","window":{"end","start"}}, UTC.
Value: JSON {"city", "window": {"start", "end"}, "readings", "celsius_avg"}: the whole row.
"""
DOMAIN = Domain(
    name="weather",
    title="Weather",
    topics=(READINGS, CITY_STATS),
    reports={"weather-city-stats": Report(CITY_STATS, group=("city",), counted="readings")},
    demo=("--rate", "20"),
)
