"""Wikimedia: edits by bots and humans on all wikis, from the stream of recent changes.

A change is Avro in the Confluent wire format, written with any registered version of subject wikimedia-value. Only changes of type `edit`
are counted; new pages, log entries and other types are archived.
"""

from collections.abc import Sequence
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from contract.domains.wikimedia import WIKIMEDIA, WIKIMEDIA_EDITOR_SESSIONS, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS
from contract.json_text import YEAR_10000
from infrastructure.settings import Settings
from pipeline.formats.confluent_avro import IS_READ, Subject, WriterSchemas, events
from pipeline.formats.json_values import is_identifier, too_long
from pipeline.query import Query
from pipeline.sinks.archives import ParquetArchive
from pipeline.sinks.dead_letters import DeadLetterTopic, dead_letters
from pipeline.sinks.topics import CompactedAvroTopic, CompactedTopic
from pipeline.sources.kafka import NO_CLOCK, ORIGIN, KafkaTopic, latest_event
from pipeline.sources.watermarks import Watermark

CHANGES, PROCESSED = Subject(WIKIMEDIA), Subject(WIKIMEDIA_PROCESSED)
BOT, HUMAN = "Bot", "Human"
SESSION_GAP = "5 minutes"

# With the event time in the key, Spark drops an edit's state when the watermark passes it.
_EVENT_KEY = ("event_id", "edited_at")
# As in `edits`, with the day, so that a reader of one day reads no other.
_ARCHIVED_KEY = ("coalesce(nullif(meta.id, ''), concat_ws('-', kafka_topic, kafka_partition, kafka_offset))", "changed_at", "date")
_MAX_PAGE_BYTES = 2**40  # far above any real page, and sums still fit a long


def edits(records: DataFrame, schemas: WriterSchemas, future: str, extra_fields: Sequence[str] = ()) -> DataFrame:
    """Edits, one row per report: an edit that is reported twice gives two rows.

    records: columns of sources.kafka.RECORD, with values written by `schemas`.
    future: how far an edit may be ahead of its record, e.g. "10 minutes"; edits further ahead are dropped.
    extra_fields: further fields of schemas.reader to return, which are identifiers; edits with longer ones are dropped.
    Returns topic, partition, offset, event_id, edited_at (the event time), requested_by ("Bot" or "Human"), wiki, namespace (long),
    bytes (long, the change in page size; 0 if unknown), and `extra_fields`.
    """
    event = F.col("event")
    old, new = _whole_number(event["length"]["old"]), _whole_number(event["length"]["new"])
    are_sizes = old.between(0, _MAX_PAGE_BYTES) & new.between(0, _MAX_PAGE_BYTES)
    return (
        events(records, schemas)
        .where(event[IS_READ] & _is_edit(event) & _is_whole(event) & (_time_of(event) <= latest_event(future)))
        .where(reduce(and_, (is_identifier(event[name]) for name in extra_fields), F.lit(True)))  # noqa: FBT003
        .select(
            *ORIGIN,
            F.coalesce(F.nullif(event["meta"]["id"], F.lit("")), F.concat_ws("-", *ORIGIN)).alias("event_id"),
            _time_of(event).alias("edited_at"),
            F.when(event["bot"], BOT).otherwise(HUMAN).alias("requested_by"),
            event["wiki"].alias("wiki"),
            _whole_number(event["namespace"]).alias("namespace"),
            F.when(are_sizes, new - old).otherwise(0).alias("bytes"),
            *(event[name].alias(name) for name in extra_fields),
        )
    )


def edit_stats(edits: DataFrame, *, window: str, slide: str) -> DataFrame:
    """Edits by bots and by humans, in sliding windows.

    edits: event_id, edited_at, requested_by; duplicates are removed.
    window, slide: the length of the windows and the interval between their starts, e.g. "60 seconds".
    Returns window{start, end}, requested_by, counts (long). An edit counts in each of the window / slide windows that contain it.
    """
    return (
        _each_once(edits)
        .groupBy(F.window("edited_at", window, slide), "requested_by")
        .agg(F.count("*").alias("counts"))
        .select("window", "requested_by", "counts")
    )


def wiki_stats(edits: DataFrame) -> DataFrame:
    """Edits and bytes added and removed, per wiki, namespace and minute.

    edits: event_id, edited_at, wiki, namespace, bytes; duplicates are removed.
    Returns wiki, namespace, window{start, end}, edits, bytes_added, bytes_removed (long, never negative).
    """
    return (
        _each_once(edits)
        .groupBy("wiki", "namespace", F.window("edited_at", "1 minute"))
        .agg(*_totals())
        .select("wiki", "namespace", "window", "edits", "bytes_added", "bytes_removed")
    )


def editor_sessions(edits: DataFrame) -> DataFrame:
    """Sessions of an editor on all wikis: edits that follow each other within SESSION_GAP.

    A gap of exactly SESSION_GAP continues a session; only a longer one ends it. In a stream, a session is written once, when the watermark
    has passed its end; a bot that never rests for so long has no session.
    edits: event_id, edited_at, user, bytes; duplicates are removed.
    Returns user ("" if hidden), window{start, end} (the first edit, and the last plus SESSION_GAP), edits, bytes_added, bytes_removed
    (long, never negative).
    """
    return (
        _each_once(edits)
        .withColumn("user", F.coalesce("user", F.lit("")))
        .groupBy("user", F.session_window("edited_at", SESSION_GAP).alias("window"))
        .agg(*_totals())
        .select("user", "window", "edits", "bytes_added", "bytes_removed")
    )


def changes(records: DataFrame, schemas: WriterSchemas) -> DataFrame:
    """All readable changes, of every type.

    records: columns of sources.kafka.RECORD, with values written by `schemas`.
    Returns kafka_topic, kafka_partition, kafka_offset, kafka_timestamp, changed_at (the event time, or null), date (the UTC day of
    changed_at, or else of kafka_timestamp) and all fields of schemas.reader. A field whose name clashes with a column becomes event_<name>.
    """
    event = F.col("event")
    read = events(records, schemas).where(event[IS_READ])
    metadata = {
        **{f"kafka_{name}": F.col(name) for name in (*ORIGIN, "timestamp")},
        "changed_at": _time_of(event),
        "date": F.to_date(F.coalesce(_time_of(event), "timestamp")),
    }
    fields: dict[str, Column] = {}
    for name in (name for name in read.select("event.*").columns if name != IS_READ):
        column = name
        while column.lower() in {*metadata, *map(str.lower, fields)}:
            column = f"event_{column}"
        fields[column] = event[name]
    return read.select(*(column.alias(name) for name, column in {**metadata, **fields}.items()))


def unusable(records: DataFrame, schemas: WriterSchemas, future: str) -> DataFrame:
    """Dead letters: unreadable records, edits that cannot be counted, and changes further ahead than `future`.

    records: columns of sources.kafka.RECORD, with values written by `schemas`.
    Returns the columns of `dead_letters`.
    """
    return dead_letters(events(records, schemas), _reason(schemas, F.col("event"), future))


def _reason(schemas: WriterSchemas, event: Column, future: str) -> Column:
    return F.coalesce(
        schemas.reason(F.col("value"), event),
        F.when(event["type"].isNull(), "no type; archived all the same"),
        F.when(~is_identifier(event["wiki"]), f"{too_long('wiki')}; archived all the same"),
        F.when(_is_edit(event) & ~_is_whole(event), "an edit without bot, namespace, timestamp or wiki; archived all the same"),
        F.when(_is_edit(event) & ~is_identifier(event["user"]), f"{too_long('user')}, so no session counts it; archived all the same"),
        F.when(_time_of(event) > latest_event(future), "timestamp is in the future; archived all the same"),
        F.when(F.col("clock").isNull(), f"{NO_CLOCK}; archived all the same"),
    )


def _is_edit(event: Column) -> Column:
    return event["type"].eqNullSafe("edit")


def _is_whole(event: Column) -> Column:
    """Whether an edit has all fields needed to count it; never null."""
    return (
        event["bot"].isNotNull()
        & event["wiki"].isNotNull()
        & is_identifier(event["wiki"])
        & _whole_number(event["namespace"]).isNotNull()
        & _time_of(event).isNotNull()
    )


def _time_of(event: Column) -> Column:
    """The event time; null if missing or outside the years 1970 to 9999, such as milliseconds instead of seconds."""
    seconds = _whole_number(event["timestamp"])
    return F.when(seconds.between(0, YEAR_10000 - 1), F.timestamp_seconds(seconds))


def _whole_number(number: Column) -> Column:
    """The number as a long. Another writer's schema may have made it a double, and a cast of 1e300 or NaN would end the query."""
    return number.try_cast("long")


def _totals() -> tuple[Column, ...]:
    return (
        F.count("*").alias("edits"),
        F.sum(F.greatest("bytes", F.lit(0))).alias("bytes_added"),
        F.sum(F.greatest(-F.col("bytes"), F.lit(0))).alias("bytes_removed"),
    )


def _each_once(edits: DataFrame) -> DataFrame:
    return edits.dropDuplicates(list(_EVENT_KEY))


def queries(settings: Settings) -> tuple[Query, ...]:
    """The queries of this domain, with windows and watermark from `settings`."""
    source = KafkaTopic(WIKIMEDIA.name)
    return (
        Query(
            "wikimedia-edit-stats",
            source=source,
            subject=CHANGES,
            decode=partial(edits, future=settings.future),
            watermark=Watermark("edited_at", delay=settings.wikimedia_watermark),
            transform=partial(edit_stats, window=settings.wikimedia_window, slide=settings.wikimedia_slide),
            sink=CompactedAvroTopic(WIKIMEDIA_PROCESSED, key=("requested_by", "window"), subject=PROCESSED),
            mode="update",
        ),
        Query(
            "wikimedia-wiki-stats",
            source=source,
            subject=CHANGES,
            decode=partial(edits, future=settings.future),
            watermark=Watermark("edited_at", delay=settings.wikimedia_watermark),
            transform=wiki_stats,
            sink=CompactedTopic(WIKIMEDIA_WIKI_STATS, key=("wiki", "namespace", "window")),
            mode="update",
        ),
        Query(
            "wikimedia-editor-sessions",
            source=source,
            subject=CHANGES,
            decode=partial(edits, future=settings.future, extra_fields=("user",)),
            watermark=Watermark("edited_at", delay=settings.wikimedia_watermark),
            transform=editor_sessions,
            sink=CompactedTopic(WIKIMEDIA_EDITOR_SESSIONS, key=("user", "window")),
            mode="append",
            on_request=True,
        ),
        Query(
            "wikimedia-archive",
            source=source,
            subject=CHANGES,
            decode=changes,
            sink=ParquetArchive("wikimedia/changes", partition_by="date", origin_prefix="kafka_", event_key=_ARCHIVED_KEY),
            trigger_seconds=30,
        ),
        Query(
            "wikimedia-dead-letters",
            source=source,
            subject=CHANGES,
            decode=partial(unusable, future=settings.future),
            sink=DeadLetterTopic(),
            trigger_seconds=10,
        ),
    )
