"""Every query, of every story."""

from collections.abc import Sequence

from pipeline import nest, taxi, wikimedia
from pipeline.query import Query
from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings


def queries(settings: Settings) -> tuple[Query, ...]:
    """The queries of all stories."""
    return (*nest.QUERIES, *taxi.queries(settings), *wikimedia.queries(settings))


def chosen(names: Sequence[str], settings: Settings) -> list[Query]:
    """The queries named, all without names. A query brings along what keeps the dead letters of its source.

    Raises StreamgaugeError for a name that there is not.
    """
    by_name = {query.name: query for query in queries(settings)}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        msg = f"no query {', '.join(unknown)}; there are {', '.join(by_name)}"
        raise StreamgaugeError(msg)
    if not names:
        return list(by_name.values())
    sources = {by_name[name].source.name for name in names}
    return [
        query
        for query in by_name.values()
        if query.name in names or (query.name.endswith("-dead-letters") and query.source.name in sources)
    ]
