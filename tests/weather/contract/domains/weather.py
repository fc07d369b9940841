"""Weather stations: the average temperature per city and hour."""

from contract.domains.domain import Domain, Report
from contract.topics import A_WEEK, Topic, compacted_topic

READINGS = Topic(
    name="weather-readings",
    partitions=3,
    key="station, UTF-8",
    value='JSON {"station", "time", "celsius"}: one reading; time in ISO 8601, UTC',
    config=A_WEEK,
    is_source=True,
)
CITY_STATS = compacted_topic(
    name="weather-city-stats",
    key='canonical JSON {"city","window":{"end","start"}}, UTC',
    value='JSON {"city", "window": {"start", "end"}, "readings", "celsius_avg"}: the whole row',
)
DOMAIN = Domain(
    name="weather",
    title="Weather",
    topics=(READINGS, CITY_STATS),
    reports={"weather-city-stats": Report(CITY_STATS, group=("city",), counted="readings")},
    demo=("--rate", "20"),
)
