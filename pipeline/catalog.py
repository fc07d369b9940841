"""All queries: those of the domains, and those of ingested topics."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import cast

from contract.create_topics import create_missing
from contract.domains import NAMES
from contract.topics import ALERTS, DEAD_LETTERS, QUERY_STATES, STREAMING_METRICS
from infrastructure.errors import check_names
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.settings import Settings
from pipeline.database.sink import in_database
from pipeline.ingest.upsert import UpsertTable, ingests
from pipeline.query import Query
from pipeline.sinks.archives import DeltaArchive, ParquetArchive
from pipeline.sinks.dead_letters import DeadLetterTopic
from pipeline.sinks.topics import CompactedTopic
from pipeline.sources.kafka import KafkaTopic


def queries(settings: Settings) -> tuple[Query, ...]:
    """The queries of all domains but those on request, and those of the tables of settings.database_url if there is one.

    The archives that settings.delta_archives names are Delta tables; all are if the lake is an object store.

    Raises StreamgaugeError when settings.delta_archives names an unknown archive.
    """
    of_domains = [query for query in _of_domains(settings) if not query.on_request]
    archives = [query.name for query in of_domains if isinstance(query.sink, ParquetArchive)]
    all_in_delta = settings.delta_archives == "all" or settings.is_lake_remote  # Spark's Parquet sink is not safe in an object store
    wanted = archives if all_in_delta else settings.delta_archives.replace(",", " ").split()
    check_names("archive for STREAMGAUGE_DELTA_ARCHIVES", wanted, archives)
    chosen = tuple(in_delta(query) if query.name in wanted else query for query in of_domains)
    tables = (in_database(query) for query in chosen if isinstance(query.sink, CompactedTopic))
    return (*chosen, *tables) if settings.database_url else chosen


def in_delta(query: Query) -> Query:
    """The Parquet archive as a Delta table: a separate query, `<name>-delta`, with its own checkpoint and folder."""
    sink = cast("ParquetArchive", query.sink)
    return replace(query, name=f"{query.name}-delta", sink=DeltaArchive(**{**vars(sink), "path": f"{sink.path}_delta"}))


def new_version(query: Query) -> Query:
    """A new version of a query beside the current one: under the name `<name>.v<version>`, with a checkpoint and topics of its own."""
    ending = f".v{query.version}"
    return replace(query, name=f"{query.name}{ending}", sink=cast("CompactedTopic", query.sink).as_new_version(ending), on_request=True)


def all_queries(settings: Settings) -> tuple[Query, ...]:
    """All queries that have a name: those of the domains, each followed by its variants, and those of topics ingested here."""
    return (*(variant for query in _of_domains(settings) for variant in (query, *_variants(query))), *ingests(settings))


def _variants(query: Query) -> Iterator[Query]:
    """For an archive, the query that writes it as a Delta table. For a compacted topic, the query of its database table, and a new version."""
    if isinstance(query.sink, ParquetArchive):
        yield in_delta(query)
    elif isinstance(query.sink, CompactedTopic):
        yield in_database(query)
        yield new_version(query)


def chosen(names: Sequence[str], settings: Settings) -> list[Query]:
    """The named queries, or all queries of the domains if `names` is empty. Adds the dead-letter query of each query's source.

    Raises StreamgaugeError for an unknown name.
    """
    if not names:
        return list(queries(settings))
    by_name = {query.name: query for query in all_queries(settings)}
    check_names("query", names, by_name)
    # A new version has the same dead letters as the current one.
    readers = {
        (by_name[name].source.name, name if isinstance(by_name[name].sink, UpsertTable) else "")
        for name in names
        if not is_new_version(by_name[name])
    }
    return [
        query
        for query in by_name.values()
        if query.name in names or (isinstance(query.sink, DeadLetterTopic) and (query.source.name, query.sink.reader) in readers)
    ]


def is_new_version(query: Query) -> bool:
    """Whether the query is a new version beside the current one."""
    return isinstance(query.sink, CompactedTopic) and query.sink.current is not None


def create_topics_of_new_versions(queries: Iterable[Query], settings: Settings) -> None:
    """Creates the missing topics of new versions among `queries`."""
    topics = [topic for query in queries if is_new_version(query) for topic in cast("CompactedTopic", query.sink).topics]
    if topics:  # else a run need not reach Kafka yet
        create_missing(topics, settings)


def create_topics_of_ingests(settings: Settings) -> None:
    """Creates the missing ones of the topics that an ingest writes: on any Kafka, it needs none of the domains'."""
    create_missing([DEAD_LETTERS, STREAMING_METRICS, QUERY_STATES, ALERTS], settings)


def _of_domains(settings: Settings) -> tuple[Query, ...]:
    of_domains = (query for name in NAMES for query in import_module(f"pipeline.domains.{name}").queries(settings))
    interval = None if HAS_DELTA else settings.checkpoint_interval
    return tuple(_in_real_time(query, interval) if interval and _fits_real_time(query) else query for query in of_domains)


def _in_real_time(query: Query, checkpoint_interval: str) -> Query:
    """The query in Spark's real-time mode, which has output mode update alone. Dead letters are appended in it, too: each is a new row."""
    source = replace(cast("KafkaTopic", query.source), reader=query.name, can_wait=isinstance(query.sink, DeadLetterTopic))
    return replace(query, real_time=checkpoint_interval, mode="update", source=source)


def _fits_real_time(query: Query) -> bool:
    """Whether Spark runs the query in real-time mode: no files, no session windows, no transformWithState from Python, no foreachBatch."""
    if not isinstance(query.source, KafkaTopic):
        return False
    counts = isinstance(query.sink, CompactedTopic) and query.mode == "update" and not query.has_timers
    return counts or isinstance(query.sink, DeadLetterTopic)
