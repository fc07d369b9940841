"""The queries of an ingested topic: one merges records into the table, the other writes dead letters."""

from functools import partial

from contract.settings import Settings
from pipeline.ingest.location import locations, query_name
from pipeline.ingest.records import unusable
from pipeline.ingest.upsert import UpsertTable
from pipeline.query import Query, unchanged
from pipeline.sinks.topics import DeadLetterTopic
from pipeline.sources.topic import KafkaTopic


def queries_of(topic: str, *, debug: bool = False) -> tuple[Query, ...]:
    """The queries of `streamgauge ingest`, the one that writes the table first. With `debug`, there are no dead letters."""
    source, name = KafkaTopic(topic), query_name(topic, debug=debug)
    upserts = Query(name, source=source, decode=unchanged, sink=UpsertTable(topic, debug), mode="append")
    letters = Query(
        f"{name}-dead-letters",
        source=source,
        decode=partial(unusable, reader=name),
        sink=DeadLetterTopic(reader=name),
        mode="append",
        trigger_seconds=5,
    )
    return (upserts,) if debug else (upserts, letters)


def ingests(settings: Settings) -> tuple[Query, ...]:
    """The queries of all topics that have been ingested here."""
    return tuple(query for location in locations(settings) for query in queries_of(location.topic, debug=location.debug))
