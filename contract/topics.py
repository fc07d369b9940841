"""Every topic: its name, partitions, cleanup policy, and what its key and value mean.

Topics are created from here and nowhere else; the embedded broker creates none by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

LARGEST_RECORD_BYTES = 10 * 1024 * 1024
"""The largest record, over all: a document of 5 MB passes, also on its way to the dead letters."""

# Compaction leaves the active segment alone, so on a topic of a few thousand small records Kafka's defaults (1 GB, 7 days)
# would never compact anything.
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "60000",
    "segment.bytes": str(16 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "max.compaction.lag.ms": "120000",
    "delete.retention.ms": "86400000",
}


@dataclass(frozen=True)
class Topic:
    """A topic and its contract. `config` holds Kafka's own names of topic settings; a source topic is one that producers write."""

    name: str
    partitions: int
    key: str
    value: str
    config: Mapping[str, str] = field(default_factory=dict)
    is_source: bool = False

    @property
    def is_compacted(self) -> bool:
        """Whether the topic is a table: its last value per key counts, and a null value deletes."""
        return "compact" in self.config.get("cleanup.policy", "delete")

    @property
    def is_result(self) -> bool:
        """Whether the topic is a table of results, and not one of how the queries do."""
        return self.is_compacted and self.name != QUERY_STATES.name


NEST_LOGS = Topic(
    name="nest-logs",
    partitions=3,
    key="structure_id of the home that reports, UTF-8; orders a home's documents. Readers do not rely on it",
    value="one Works-with-Nest document, JSON: metadata, devices{cameras{id: camera}}, structures",
    config={"cleanup.policy": "delete", "retention.ms": str(7 * 24 * 3_600_000), "max.message.bytes": str(LARGEST_RECORD_BYTES)},
    is_source=True,
)

NEST_CAMERA_STATS = Topic(
    name="nest-camera-stats",
    partitions=1,
    key='canonical JSON {"window":{"end","start"},"zip_code"}, UTC',
    value='JSON {"zip_code", "window": {"start", "end"}, "count"}: people seen in that zip code and hour, the whole row',
    config=_COMPACTED,
)

NYC_TAXI = Topic(
    name="nyc-taxi",
    partitions=3,
    key="PULocationID of the trip as decimal digits, UTF-8, null if the trip has none; orders a zone's trips. Readers do not rely on it",
    value="one green taxi trip, JSON of TLC's columns; times are ms since 1970 of New York's wall clock, taken as if it were UTC",
    config={"cleanup.policy": "delete", "retention.ms": str(7 * 24 * 3_600_000)},
    is_source=True,
)

TAXI_BOROUGH_STATS = Topic(
    name="taxi-borough-stats",
    partitions=1,
    key='canonical JSON {"borough","window":{"end","start"}}, UTC',
    value='JSON {"borough", "window": {"start", "end"}, "trips", "passenger_count_avg"}, and "_sum" and "_avg" of each of trip_distance, fare_amount, tip_amount, total_amount: the whole row',
    config=_COMPACTED,
)

WIKIMEDIA = Topic(
    name="wikimedia",
    partitions=3,
    key='"<wiki>:<page title>", UTF-8, e.g. "enwiki:Talk:Kafka"; keeps the edits of a page in order. Readers do not rely on it',
    value=(
        "one change of a wiki, Avro in the Confluent wire format, subject wikimedia-value (data/schemas/wikimedia-value.avsc); "
        'headers: source = "live" | "simulated" | "recorded", event_id = meta.id, both UTF-8'
    ),
    config={"cleanup.policy": "delete", "retention.ms": str(7 * 24 * 3_600_000), "max.message.bytes": str(LARGEST_RECORD_BYTES)},
    is_source=True,
)

WIKIMEDIA_PROCESSED = Topic(
    name="wikimedia.processed",
    partitions=1,
    key='canonical JSON {"requested_by","window":{"end","start"}}, UTC',
    value=(
        "edits by Bot or Human in that window, the whole row, Avro in the Confluent wire format, subject wikimedia.processed-value "
        "(data/schemas/wikimedia.processed-value.avsc): window{start, end}, requested_by, counts"
    ),
    config=_COMPACTED,
)

WIKIMEDIA_WIKI_STATS = Topic(
    name="wikimedia-wiki-stats",
    partitions=1,
    key='canonical JSON {"namespace","wiki","window":{"end","start"}}, UTC',
    value=(
        'JSON {"wiki", "namespace", "window": {"start", "end"}, "edits", "bytes_added", "bytes_removed"}: '
        "edits of that wiki and namespace in that minute, the whole row"
    ),
    config=_COMPACTED,
)

DEAD_LETTERS = Topic(
    name="dead-letters",
    partitions=1,
    key=(
        'canonical JSON {"offset","partition","topic"} of the record that could not be used; the same record has the same key. '
        "What a producer could not even make a record of has offset and partition -1, and its SHA-256 besides"
    ),
    value="the record's raw bytes, unchanged (null if it was null); headers topic, partition, offset, timestamp, reason as UTF-8",
    config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000), "max.message.bytes": str(LARGEST_RECORD_BYTES)},
)

STREAMING_METRICS = Topic(
    name="streaming-metrics",
    partitions=1,
    key="query name, UTF-8",
    value=(
        'JSON {"event": "started" | "progress" | "idle" | "terminated", "query", "time", "process": {"host", "pid"}, "run_id", ...}: '
        "how a query runs, one record an event"
    ),
    config={"cleanup.policy": "delete", "retention.ms": str(24 * 3_600_000), "segment.ms": "3600000"},
)

QUERY_STATES = Topic(
    name="query-states",
    partitions=1,
    key="query name, UTF-8",
    value=(
        'JSON {"query", "state": "running" | "idle" | "stopped" | "failed", "since", "time", "started_at", "process": {"host", "pid"}, "run_id", '
        '"error", "error_detail", "error_at", "source_offsets", "progress"}: where the query stands, the whole row; at least every 5 s while it runs'
    ),
    config=_COMPACTED,
)

ALERTS = Topic(
    name="alerts",
    partitions=1,
    key="query name, UTF-8",
    value='JSON {"time", "level": "warning" | "error", "query", "what", "detail"}: what a person should look at; "what" is one line',
    config={"cleanup.policy": "delete", "retention.ms": str(30 * 24 * 3_600_000)},
)

TOPICS = (
    NEST_LOGS,
    NEST_CAMERA_STATS,
    NYC_TAXI,
    TAXI_BOROUGH_STATS,
    WIKIMEDIA,
    WIKIMEDIA_PROCESSED,
    WIKIMEDIA_WIKI_STATS,
    DEAD_LETTERS,
    STREAMING_METRICS,
    QUERY_STATES,
    ALERTS,
)
