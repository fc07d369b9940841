"""Every query, of every story."""

from pipeline import nest, wikimedia
from pipeline.query import Query
from streamgauge.errors import StreamgaugeError

QUERIES: tuple[Query, ...] = (*nest.QUERIES, *wikimedia.QUERIES)


def chosen(names: list[str]) -> list[Query]:
    """The queries named, all without names. A query brings along what keeps the dead letters of its source.

    Raises StreamgaugeError for a name that there is not.
    """
    by_name = {query.name: query for query in QUERIES}
    unknown = [name for name in names if name not in by_name]
    if unknown:
        msg = f"no query {', '.join(unknown)}; there are {', '.join(by_name)}"
        raise StreamgaugeError(msg)
    if not names:
        return list(QUERIES)
    sources = {by_name[name].source.name for name in names}
    return [query for query in QUERIES if query.name in names or (query.name.endswith("-dead-letters") and query.source.name in sources)]
