"""Whether a topic can have the names that ingesting it takes: of its table, its queries and their files."""

from contract.topics import DEAD_LETTERS
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from pipeline.catalog import all_queries
from pipeline.ingest.location import Location, locations
from pipeline.ingest.upsert import queries_of
from pipeline.lake.derived_tables import FOLDER
from pipeline.lake.sql_tables import sql_tables
from pipeline.sinks.archives import Archive
from pipeline.sinks.sink import name_in_sql


def check_names_of(location: Location, settings: Settings) -> None:
    """Raises StreamgaugeError unless the names are possible, and belong to nothing else. In SQL, and on some disks, case makes no difference."""
    topic, name = location.topic, location.name
    if topic == DEAD_LETTERS.name:
        msg = f"topic {topic} takes what `ingest` cannot use, so ingesting it would have no end; copy the topic to another one"
        raise StreamgaugeError(msg)
    if name.startswith("_"):
        msg = f"the table of topic {topic} would be {name}, and names that begin with _ are internal to the lake; copy the topic to one whose name begins with a letter or digit"
        raise StreamgaugeError(msg)
    for other in locations(settings):
        if other.topic != topic and (shared := _names(location) & _names(other)):
            msg = f"topic {other.topic} is ingested here, and topic {topic} would share the name {min(shared)} with it, where case makes no difference; use another STREAMGAUGE_HOME for one of them"
            raise StreamgaugeError(msg)
    if owner := _reserved(location, settings).get(name.casefold()):
        msg = f"the table of topic {topic} would be {name}, which is the name of {owner}; use another STREAMGAUGE_HOME for it"
        raise StreamgaugeError(msg)


def _names(location: Location) -> set[str]:
    """The names of the table and of its queries, which are also those of checkpoints."""
    return {name.casefold() for name in (location.name, *(query.name for query in queries_of(location.topic, debug=location.debug)))}


def _reserved(location: Location, settings: Settings) -> dict[str, str]:
    """The names of existing tables, and of those that other commands may create, each with its owner."""
    owners = {table.name.casefold(): f"{table.format} {table.path}" for table in sql_tables(settings) if table.path != location.table}
    for query in all_queries(settings):
        if isinstance(query.sink, Archive):
            name = name_in_sql(query.sink.path.split("/"))
            owners |= {name: f"the table of query {query.name}", f"{name}_distinct": f"a view of query {query.name}"}
    if location.name.casefold().startswith(f"{FOLDER}_"):
        owners.setdefault(location.name.casefold(), "a derived table, as all that begin so")
    return owners
