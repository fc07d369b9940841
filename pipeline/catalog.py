"""Every query, of every story and of every topic that was ingested."""

from collections.abc import Sequence

from pipeline import nest, taxi, wikimedia
from pipeline.ingest.queries import ingests
from pipeline.ingest.upsert import UpsertTable
from pipeline.query import Query
from pipeline.sinks import DeadLetterTopic
from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings


def queries(settings: Settings) -> tuple[Query, ...]:
    """The queries of all stories."""
    return (*nest.QUERIES, *taxi.queries(settings), *wikimedia.queries(settings))


def known(settings: Settings) -> tuple[Query, ...]:
    """Those, and the queries of topics that were ingested here."""
    return (*queries(settings), *ingests(settings))


def chosen(names: Sequence[str], settings: Settings) -> list[Query]:
    """The queries named, those of all stories without names. A query brings along what keeps the dead letters of its source.

    Raises StreamgaugeError for a name that there is not.
    """
    by_name = {query.name: query for query in known(settings)}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        msg = f"no query {', '.join(unknown)}; there are {', '.join(by_name)}"
        raise StreamgaugeError(msg)
    if not names:
        return list(queries(settings))
    readers = {(by_name[name].source.name, name if isinstance(by_name[name].sink, UpsertTable) else "") for name in names}
    return [
        query
        for query in by_name.values()
        if query.name in names or (isinstance(query.sink, DeadLetterTopic) and (query.source.name, query.sink.reader) in readers)
    ]
