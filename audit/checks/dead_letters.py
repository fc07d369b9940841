"""Verifies dead letters: each record that cannot be used has one, whole and with a reason that holds, and no other record has.

A record may have several reasons; its letter has any one of them. A letter is younger than its record. So when topic dead-letters has lost its
oldest records, only a record whose own timestamp is before that of the oldest one left can have lost its letter.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

import duckdb

from audit.audited import Facts
from audit.reading.read_range import ReadRange
from audit.reading.records import Origin, records_between
from audit.time_range import ms_of
from audit.verdicts.comparison import Kind, kinds_by_key
from contract.checkpoints.contents import Offsets
from contract.topics import DEAD_LETTERS, MAX_VALUE_BYTES
from infrastructure.kafka.topic_ends import first_and_end_offsets
from infrastructure.settings import Settings

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
    """A dead letter. digest: the SHA-256 of its value, None for null. reasons: it has one of these."""

    headers: Mapping[str, str]
    digest: str | None
    reasons: Sequence[str]

    def matches(self, found: "Letter") -> bool:
        """Whether a letter that was found is this one."""
        # The time of a record is not compared if it is not of the years 1970 to 2999: Spark writes it in a way of its own.
        headers = {name: text for name, text in found.headers.items() if name != "timestamp" or name in self.headers}
        is_same = (self.headers, self.digest) == (headers, found.digest)
        return is_same and _in_short(found.reasons[0]) in map(_in_short, self.reasons)


def _in_short(reason: str) -> str:
    """Without why a schema cannot be used, which libraries tell in words of their own."""
    return re.sub(r"(the schema of id \d+ cannot be used): .*?(; only its first [\d,]+ bytes are kept)?$", r"\1\2", reason, flags=re.DOTALL)


@dataclass(frozen=True)
class Letters:
    """The letters in the topic, by their records. oldest_ms: if others have expired unread, the timestamp of the oldest one, or now."""

    by_origin: Mapping[Origin, Sequence[Letter]]
    oldest_ms: int | None


def expected_letters(database: duckdb.DuckDBPyConnection, letters: DeadLetters) -> tuple[dict[Origin, Letter], dict[Origin, int]]:
    """The letters that must be there, and the timestamps of their records, in ms since 1970."""
    expected: dict[Origin, Letter] = {}
    timestamps: dict[Origin, int] = {}
    columns = 'topic, partition, "offset", "timestamp", timestamp_ms, digest, reasons'
    for *origin, time, timestamp_ms, digest, reasons in database.execute(f"SELECT {columns} FROM {letters.facts.name}").fetchall():
        topic, partition, offset = origin
        headers = {"topic": topic, "partition": str(partition), "offset": str(offset)}
        if time is not None:
            headers["timestamp"] = time
        expected[topic, partition, offset] = Letter(headers, digest, reasons)
        timestamps[topic, partition, offset] = timestamp_ms or 0
    return expected, timestamps


def letters_of(settings: Settings, sources: Collection[str], reader: str, ends: Offsets, begins: Offsets = MappingProxyType({})) -> Letters:
    """The letters of records of the topics `sources`, between these offsets of topic dead-letters."""
    offsets = first_and_end_offsets(settings.kafka, ends)
    starts = {partition: min(max(offsets[partition][0], begins.get(partition, 0)), end) for partition, end in ends.items()}
    by_origin: dict[Origin, list[Letter]] = {}
    first: dict[str, Any] | None = None
    for row in (row for table in records_between(settings, starts, ends) for row in table.to_pylist()):
        first = first or row
        if (origin := _origin(row["key"], sources, reader)) is None:
            continue
        headers = {header["name"]: (header["value"] or b"").decode(errors="replace") for header in row["headers"] or ()}
        letter = Letter({name: headers[name] for name in headers if name != "reason"}, _digest(row["value"]), (headers.get("reason", ""),))
        # A batch that ran twice wrote its letters twice.
        if letter not in (letters := by_origin.setdefault(origin, [])):
            letters.append(letter)
    if all(start <= begins.get(partition, 0) for partition, (start, _) in offsets.items()):
        return Letters(by_origin, None)
    time = datetime.now(UTC) if first is None else first["timestamp"]
    return Letters(by_origin, ms_of(time and time.replace(tzinfo=UTC)))


def _origin(key: bytes | None, sources: Collection[str], reader: str) -> Origin | None:
    """The record that the key of a letter names; None of other sources and readers, and of another program. Partition -1: none of the source."""
    try:
        fields: dict[str, Any] = json.loads(key or b"{}")
        if fields["topic"] not in sources or fields.get("reader", "") != reader:
            return None
        partition, offset = (fields.get(name, -1) for name in ("partition", "offset"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if any(type(number) is not int or number < 0 for number in (partition, offset)):
        partition, offset = -1, 0
    return fields["topic"], partition, offset


def kinds_of_letters(
    expected: Mapping[Origin, Letter], timestamps: Mapping[Origin, int], found: Letters, read_range: ReadRange[Offsets]
) -> dict[Origin, Kind]:
    """What the letters of each record are. Those of a batch under way may be there or not; those of records that are gone are not checkable."""

    def excuse(origin: Origin) -> Kind | None:
        partition, offset = origin[:2], origin[2]
        if offset < read_range.starts.get(partition, 0):
            return "not_checkable"
        if origin in present:
            return None
        if offset >= read_range.committed_ends.get(partition, 0):
            return "equal"
        return "not_checkable" if found.oldest_ms is not None and timestamps[origin] < found.oldest_ms else None

    needed = {origin: letter for origin, letter in expected.items() if read_range.has(origin[:2], origin[2])}
    present = {origin: letters for origin, letters in found.by_origin.items() if not read_range.leaves_out(origin[:2], origin[2])}
    return kinds_by_key(present, needed, lambda letters, letter: len(letters) == 1 and letter.matches(letters[0]), excuse)


def record_named(origin: Origin) -> str:
    """A record, as a user reads it."""
    return "{}-{} offset {}".format(*origin)


def _digest(value: bytes | None) -> str | None:
    return None if value is None else hashlib.sha256(value[:MAX_VALUE_BYTES]).hexdigest()
