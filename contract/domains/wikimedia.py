"""Wikimedia edits per minute: by bots and people, and by wiki."""

from contract.domains.domain import Domain, Report
from contract.topics import A_WEEK, MAX_RECORD_BYTES, Topic, compacted_topic

WIKIMEDIA = Topic("wikimedia", partitions=3, config={**A_WEEK, "max.message.bytes": str(MAX_RECORD_BYTES)}, is_source=True)
"""Key: "<wiki>:<page title>", UTF-8, e.g. "enwiki:Talk:Kafka"; keeps the edits of a page in order. Readers do not rely on it.
Value: one change of a wiki, Avro in the Confluent wire format, subject wikimedia-value (data/schemas/wikimedia-value.avsc); headers:
source = "live" | "simulated" | "recorded", event_id = meta.id, both UTF-8.
"""

WIKIMEDIA_PROCESSED = compacted_topic("wikimedia.processed", has_windows=True)
"""Key: canonical JSON {"requested_by","window":{"end","start"}}, UTC.
Value: edits by Bot or Human in that window, the whole row, Avro in the Confluent wire format, subject wikimedia.processed-value
(data/schemas/wikimedia.processed-value.avsc): window{start, end}, requested_by, counts.
"""

WIKIMEDIA_WIKI_STATS = compacted_topic("wikimedia-wiki-stats", has_windows=True)
"""Key: canonical JSON {"namespace","wiki","window":{"end","start"}}, UTC.
Value: JSON {"wiki", "namespace", "window": {"start", "end"}, "edits", "bytes_added", "bytes_removed"}: edits of that wiki and namespace
in that minute, the whole row.
"""

WIKIMEDIA_EDITOR_SESSIONS = compacted_topic("wikimedia-editor-sessions", has_windows=True)
"""Key: canonical JSON {"user","window":{"end","start"}}, UTC; start is the first edit of the session, end the last one plus the gap.
Value: JSON {"user", "window": {"start", "end"}, "edits", "bytes_added", "bytes_removed"}: the whole row.
"""

DOMAIN = Domain(
    name="wikimedia",
    title="Wikimedia edits",
    topics=(WIKIMEDIA, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS, WIKIMEDIA_EDITOR_SESSIONS),
    reports={
        "wikimedia-edit-stats": Report(WIKIMEDIA_PROCESSED, group=("requested_by",), counted="counts", is_avro=True),
        "wikimedia-wiki-stats": Report(WIKIMEDIA_WIKI_STATS, group=("wiki", "namespace"), counted="edits"),
        "wikimedia-editor-sessions": Report(WIKIMEDIA_EDITOR_SESSIONS, group=("user",), counted="edits"),
    },
    demo=("--live-or-simulated",),
)
