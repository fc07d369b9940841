"""Wikimedia edits per minute: by bots and people, and by wiki."""

from typing import Literal

from contract.domains.domain import Domain
from contract.topics import A_WEEK, MAX_RECORD_BYTES, Topic, compacted_topic
from infrastructure.rows import Count, Fields, Integer, Window

WIKIMEDIA = Topic("wikimedia", partitions=3, config={**A_WEEK, "max.message.bytes": str(MAX_RECORD_BYTES)}, is_source=True)
"""Key: "<wiki>:<page title>", UTF-8, e.g. "enwiki:Talk:Kafka"; keeps the edits of a page in order. Readers do not rely on it.
Value: one change of a wiki, Avro in the Confluent wire format, subject wikimedia-value (data/schemas/wikimedia-value.avsc); headers:
source = "live" | "simulated" | "recorded", event_id = meta.id, both UTF-8.
"""


class EditStats(Fields):
    """Edits by bots or people in a window."""

    window: Window
    requested_by: Literal["Bot", "Human"]
    counts: Count


WIKIMEDIA_PROCESSED = compacted_topic(
    "wikimedia.processed", EditStats, has_windows=True, is_avro=True, counted="counts", written_by="wikimedia-edit-stats"
)
"""Key: canonical JSON {"requested_by","window":{"end","start"}}, UTC.
Value: EditStats, the whole row, Avro in the Confluent wire format, subject wikimedia.processed-value
(data/schemas/wikimedia.processed-value.avsc).
"""


class WikiStats(Fields):
    """Edits of a wiki and namespace in a minute."""

    wiki: str
    namespace: Integer
    window: Window
    edits: Count
    bytes_added: Count
    bytes_removed: Count


WIKIMEDIA_WIKI_STATS = compacted_topic("wikimedia-wiki-stats", WikiStats, has_windows=True, counted="edits")
"""Key: canonical JSON {"namespace","wiki","window":{"end","start"}}, UTC. Value: WikiStats, JSON, the whole row."""


class EditorSession(Fields):
    """A session of an editor ("" if hidden). window: from the first edit to the last one plus the gap."""

    user: str
    window: Window
    edits: Count
    bytes_added: Count
    bytes_removed: Count


WIKIMEDIA_EDITOR_SESSIONS = compacted_topic("wikimedia-editor-sessions", EditorSession, has_windows=True, counted="edits")
"""Key: canonical JSON {"user","window":{"end","start"}}, UTC. Value: EditorSession, JSON, the whole row."""

DOMAIN = Domain(
    name="wikimedia",
    title="Wikimedia edits",
    topics=(WIKIMEDIA, WIKIMEDIA_PROCESSED, WIKIMEDIA_WIKI_STATS, WIKIMEDIA_EDITOR_SESSIONS),
    demo=("--live-or-simulated",),
)
