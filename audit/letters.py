"""Verifies dead letters: each record that cannot be used has one, whole and with a reason that holds, and no other record has.

Several reasons may hold of one record. Its letter tells one of them, and which is not promised. A letter is younger than its record. So when
topic dead-letters has lost its oldest records, only a record whose own timestamp is before that of the oldest one left can have lost its letter.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import duckdb
from confluent_kafka import Message, TopicPartition

from audit.audited import Facts
from audit.comparison import Kind
from audit.prefix import Prefix
from contract.checkpoints.contents import Offsets
from contract.kafka.result_table import TableReader
from contract.settings import Settings
from contract.topics import DEAD_LETTERS, MAX_VALUE_BYTES

_LETTERS = f"""
    SELECT
        topic, partition, "offset", any_value(epoch_ms(CAST("timestamp" AS TIMESTAMP))) AS timestamp_ms,
        any_value(strftime(CAST("timestamp" AS TIMESTAMP), '%Y-%m-%dT%H:%M:%S.%g') || 'Z') AS "timestamp",
        any_value(sha256(value[1:{MAX_VALUE_BYTES}])) AS digest,
        list(DISTINCT reason || CASE WHEN octet_length(value) > {MAX_VALUE_BYTES} THEN '; only its first {MAX_VALUE_BYTES:,} bytes are kept' ELSE '' END)
            AS reasons
    FROM documents JOIN (
        SELECT topic, partition, "offset", problem AS reason FROM documents WHERE problem IS NOT NULL
        UNION ALL
        FROM ({{reasons}}) WHERE reason IS NOT NULL) USING (topic, partition, "offset")
    GROUP BY ALL
"""

Origin = tuple[str, int, int]
"""Topic, partition and offset of a record."""


@dataclass(frozen=True)
class DeadLetters:
    """The dead letters that a query writes of records, with the given `reader` in their keys.

    reasons: facts with a column `reason`, null for none: why a record cannot be used, or only in part, beside the `problem` of its document.
    """

    query: str
    reasons: Facts
    reader: str = ""

    @property
    def sink(self) -> str:
        return f"topic {DEAD_LETTERS.name}"

    @cached_property
    def facts(self) -> Facts:
        """The letters that must be there."""
        return replace(self.reasons, sql=_LETTERS.format(reasons=self.reasons.sql))


@dataclass(frozen=True)
class Letter:
    """A dead letter. digest: the SHA-256 of its value, None for null. reasons: those of which it tells one."""

    headers: Mapping[str, str]
    digest: str | None
    reasons: Sequence[str]

    def is_told_by(self, found: "Letter") -> bool:
        """Whether a letter that was found is this one."""
        return (self.headers, self.digest) == (found.headers, found.digest) and found.reasons[0] in self.reasons


@dataclass(frozen=True)
class Letters:
    """The letters in the topic, by their records. oldest_ms: the timestamp of the oldest one, if others have been deleted before it."""

    by_origin: Mapping[Origin, Sequence[Letter]]
    oldest_ms: int | None


def expected_letters(database: duckdb.DuckDBPyConnection, letters: DeadLetters) -> tuple[dict[Origin, Letter], dict[Origin, int]]:
    """The letters that must be there, and the timestamps of their records, in ms since 1970."""
    found: dict[Origin, Letter] = {}
    timestamps: dict[Origin, int] = {}
    columns = 'topic, partition, "offset", "timestamp", timestamp_ms, digest, reasons'
    for *origin, time, timestamp_ms, digest, reasons in database.execute(f"SELECT {columns} FROM {letters.facts.name}").fetchall():
        topic, partition, offset = origin
        headers = {"topic": topic, "partition": str(partition), "offset": str(offset)}
        if time is not None:  # Spark writes years beyond 9999 in a way of its own
            headers["timestamp"] = time
        found[topic, partition, offset] = Letter(headers, digest, reasons)
        timestamps[topic, partition, offset] = timestamp_ms or 0
    return found, timestamps


class _Reader(TableReader):
    """Reads the letters of some topics and one reader, from the offset `begin` up to `end`."""

    def __init__(self, settings: Settings, sources: Collection[str], reader: str, begin: int, end: int) -> None:
        super().__init__(settings.kafka, DEAD_LETTERS.name)
        self._sources, self._reader, self._begin, self._end = sources, reader, begin, end
        self.by_origin: dict[Origin, list[Letter]] = {}
        self.first_offset: int | None = None
        self.oldest_ms = 0

    def _starts(self, offsets: Mapping[int, tuple[int, int]]) -> list[TopicPartition]:
        return [TopicPartition(self.topic, number, min(max(first, self._begin), end)) for number, (first, end) in offsets.items()]

    def _apply(self, message: Message) -> None:
        if (message.offset() or 0) >= self._end:
            return
        if self.first_offset is None:
            self.first_offset, self.oldest_ms = message.offset(), message.timestamp()[1]
        try:
            key: dict[str, Any] = json.loads(message.key() or b"{}")
            origin = key["topic"], key["partition"], key["offset"]
        except (ValueError, KeyError, TypeError):
            return
        if key["topic"] not in self._sources or key.get("reader", "") != self._reader:
            return
        if not isinstance(key["offset"], int) or key["offset"] < 0:
            return
        pairs: Any = message.headers() or []
        headers = {name: (value or b"").decode(errors="replace") for name, value in pairs}
        letter = Letter(
            {name: text for name, text in headers.items() if name != "reason"}, _digest(message.value()), (headers.get("reason", ""),)
        )
        # A batch that ran twice wrote its letters twice.
        if letter not in (own := self.by_origin.setdefault(origin, [])):
            own.append(letter)


def letters_of(settings: Settings, sources: Collection[str], reader: str, end: int, begin: int = 0) -> Letters:
    """The letters of records of the topics `sources`, from the offset `begin` up to `end`."""
    with _Reader(settings, sources, reader, begin, end).opened() as read:
        read.read_to_end()
    return Letters(read.by_origin, read.oldest_ms if read.first_offset else None)


def kinds_of_letters(
    expected: Mapping[Origin, Letter], timestamps: Mapping[Origin, int], found: Letters, prefix: Prefix[Offsets]
) -> dict[Origin, Kind]:
    """What the letters of each record are. Those of a batch under way may be there or not; those of records that are gone are not checkable."""
    own = {one for one in expected if prefix.starts.get(one[:2], 0) <= one[2] < prefix.ends.get(one[:2], 0)}
    there = {origin for origin in found.by_origin if not prefix.leaves_out(origin[:2], origin[2])}
    return {origin: _kind(origin, expected, timestamps, found, prefix) for origin in own | there}


def _kind(
    origin: Origin, expected: Mapping[Origin, Letter], timestamps: Mapping[Origin, int], found: Letters, prefix: Prefix[Offsets]
) -> Kind:
    topic, partition, offset = origin
    own, letters = expected.get(origin), found.by_origin.get(origin, [])
    if offset < prefix.starts.get((topic, partition), 0):
        return "not_checkable"
    if own is None or offset >= prefix.ends.get((topic, partition), 0):
        return "extra"
    if letters:
        return "equal" if len(letters) == 1 and own.is_told_by(letters[0]) else "different"
    if offset >= prefix.committed_ends.get((topic, partition), 0):
        return "equal"
    return "not_checkable" if found.oldest_ms is not None and timestamps[origin] < found.oldest_ms else "missing"


def _digest(value: bytes | None) -> str | None:
    return None if value is None else hashlib.sha256(value[:MAX_VALUE_BYTES]).hexdigest()
