"""Verifies tables of ingested topics: each holds the newest record of each key, or each record, its fields in the types that the table has.

Of a key's records, the newest is the last in its partition. Of several partitions, it is that whose newest timestamp is the latest. A null value
deletes. So a topic that has lost records, by retention or compaction, tells less than the table may know.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa

from audit.audited import Facts, Row
from audit.checks.check import Check
from audit.checks.dead_letters import DeadLetters
from audit.checks.store import Store
from audit.reading.lake_files import delta_files, delta_rows
from audit.reading.read_range import read_range_of
from audit.values.documents import NO_CLOCK
from audit.values.json_texts import json_text
from audit.verdicts.comparison import Difference, Kind, differences, kinds_by_key
from audit.verdicts.verdict import RowCounts, Verdict
from contract.checkpoints.contents import Offsets
from contract.checkpoints.names import CheckpointPlace
from contract.create_topics import is_compacted
from contract.json_text import without_case
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.topic_ends import first_and_end_offsets
from infrastructure.settings import Settings
from infrastructure.storage.paths import names_in, text_of

MOST_LEVELS = 100
SCHEMA_ENDING = ".schema.json"
_ORIGIN = ("kafka_key", "kafka_partition", "kafka_offset", "kafka_timestamp")

USABLE = 'SELECT topic, partition, "offset", "timestamp", decode(key) AS key, document FROM documents WHERE problem IS NULL'
_NEWEST_SQL = """
    SELECT key, key, newest.* FROM (
        SELECT key, max_by(newest, (latest, newest.partition)) AS newest FROM (
            SELECT
                key, max("timestamp") AS latest,
                max_by({{'partition': partition, 'offset': "offset", 'timestamp': "timestamp", 'document': document}}, "offset") AS newest
            FROM {facts} WHERE {condition} GROUP BY key, partition)
        GROUP BY key)
    WHERE newest.document IS NOT NULL
"""
_EACH_SQL = """
    SELECT 'partition ' || partition || ', offset ' || "offset", key, partition, "offset", "timestamp", document FROM {facts} WHERE {condition}
"""


@dataclass(frozen=True)
class Ingested:
    """The table `table` of the lake, with the newest record of each key of a topic, or if `append`, with each record.

    query: that writes it. columns: those that it has given the table, without the Kafka columns.
    """

    query: str
    table: str
    facts: Facts
    append: bool = False
    columns: tuple[str, ...] = ()

    @property
    def sink(self) -> str:
        return f"lake/{self.table}"


def ingested(settings: Settings) -> Iterator[Ingested | DeadLetters]:
    """The tables of all topics that have been ingested here, and the dead letters of their queries. Raises StreamgaugeError for a damaged schema."""
    for name in sorted(name for name in names_in(settings.lake) if name.endswith(SCHEMA_ENDING)):
        if (text := text_of(settings.lake / name)) is None:
            continue
        try:
            schema = json.loads(text)
            topic, columns = str(schema["topic"]), tuple(field["name"] for field in schema["columns"]["fields"])
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{settings.lake / name} is not the schema of a table ({type(error).__name__}: {error}); restore it from a copy, or delete it to infer it again"
            raise StreamgaugeError(msg) from error
        table, append = name.removesuffix(SCHEMA_ENDING), schema.get("append", False)
        is_debug = table != re.sub(r"[^A-Za-z0-9_]", "_", topic)
        query = f"ingest-{topic}{'-debug' if is_debug else ''}"
        facts = Facts(f'"usable of {query}"', topic, USABLE, documents=partial(documents_of, append=append))
        yield Ingested(query, table, facts, append, columns)
        if not is_debug:
            none = replace(
                facts, name=f'"letters of {query}"', sql='SELECT topic, partition, "offset", problem AS reason FROM documents LIMIT 0'
            )
            yield DeadLetters(f"{query}-dead-letters", none, reader=query)


def documents_of(records: pa.Table, *, append: bool = False) -> pa.Table:
    """The records with their texts in column `document`, null for a deletion; and in `problem` why one cannot be stored."""
    texts: list[str | None] = []
    problems: list[str | None] = []
    columns = (records["key"].to_pylist(), records["value"].to_pylist(), records["clock"].is_null().to_pylist())
    for key, value, has_no_clock in zip(*columns, strict=True):
        reason = NO_CLOCK if has_no_clock else _problem(key, value, append=append)
        problems.append(reason)
        texts.append(value.decode() if reason is None and value is not None else None)
    table = records.drop_columns("problem").append_column("problem", pa.array(problems, pa.string()))
    return table.append_column("document", pa.array(texts, pa.string()))


def _problem(key: bytes | None, value: bytes | None, *, append: bool) -> str | None:
    if key is None and not append:
        return "no key"
    try:
        (key or b"").decode()
    except UnicodeDecodeError:
        return "the key is not UTF-8"
    if value is None and not append:
        return None
    text, reason = json_text(value, MOST_LEVELS)
    if text is None:
        return reason
    if not text.lstrip().startswith(b"{"):
        return "no JSON object"
    clashes: list[bool] = []
    json.loads(text, object_pairs_hook=lambda pairs: clashes.append(len({without_case(name) for name, _ in pairs}) < len(pairs)))
    return "an object has two names that differ in case only" if any(clashes) else None


class IngestedCheck(Check):
    """The check of such a table."""

    def __init__(self, table: Ingested, place: CheckpointPlace, store: Store) -> None:
        self._table, self._place, self._store, self._folder = table, place, store, store.settings.lake / table.table
        self.facts = [table.facts]

    def prepare(self) -> None:
        settings = self._store.settings
        self._committed = read_range_of(self._place, lambda: delta_files(self._folder), settings)
        self._is_compacted, ends = is_compacted(settings.kafka, self._table.facts.source), self._committed.ends
        if self._is_compacted:  # a later record of a key may have removed the one in the table
            ends = {partition: end for partition, (_, end) in first_and_end_offsets(settings.kafka, ends).items()}
        self.read_range = replace(self._committed, ends=ends)

    def has_grown(self) -> bool:
        """Whether the table has another version."""
        return delta_files(self._folder) != self._committed.sink_state

    def verdict(self) -> Verdict:
        """The rows compared, by key or record: of the last committed batch, or else of the batch under way, whose rows are all there or none."""
        rows, repeated = self._rows()
        counts, differences = self._compared(rows, self._committed.committed_ends)
        if RowCounts.of(counts).wrong and self._committed.planned > self._committed.committed:
            planned = self._compared(rows, self._committed.ends)
            if not RowCounts.of(planned[0]).wrong:
                counts, differences = planned
        faults = [f"{'records' if self._table.append else 'keys'} with more than one row in the table: {repeated:,}"] if repeated else []
        return self._committed.verdict(self._table, counts, differences=differences, faults=faults)

    def _rows(self) -> tuple[dict[str, Row], int]:
        """The rows of the table by key or record, and how many of these have more than one."""
        nulls: dict[str, Any] = dict.fromkeys((*_ORIGIN, *self._table.columns))  # a column that the table has lost is as one without values
        rows = [nulls | row for row in delta_rows(self._folder, self._committed.sink_state, self._store.database)]
        places = [
            f"partition {row['kafka_partition']}, offset {row['kafka_offset']}" if self._table.append else row["kafka_key"] for row in rows
        ]
        return dict(zip(places, rows, strict=True)), sum(count > 1 for count in Counter(places).values())

    def _compared(self, rows: Mapping[str, Row], ends: Offsets) -> tuple[Counter[Kind], list[Difference]]:
        database, facts = self._store.database, self._table.facts.name
        below = " OR ".join(f'(partition = {number} AND "offset" < {end})' for (_, number), end in ends.items()) or "false"
        sql = _EACH_SQL if self._table.append else _NEWEST_SQL
        expected = {place: Expected(*record) for place, *record in database.execute(sql.format(facts=facts, condition=below)).fetchall()}
        later = database.execute(f"SELECT DISTINCT key FROM {facts} WHERE NOT ({below})").fetchall() if self._is_compacted else []
        renewed = {key for (key,) in later}

        def excuse(key: str) -> Kind | None:
            return "not_checkable" if key in renewed or self._may_be_newer(rows.get(key), expected.get(key)) else None

        kinds = kinds_by_key(rows, expected, lambda row, record: record.is_in(row), excuse)
        documents = {key: record.document for key, record in expected.items()}
        return Counter(kinds.values()), differences(kinds, rows, documents, str, order=str)

    def _may_be_newer(self, found: Row | None, expected: "Expected | None") -> bool:
        """Whether the row may be that of a record which the source has lost, by retention or, in a compacted topic, because of a newer one.

        With a row per key, such a record is of another partition than the newest one that the source still has.
        """
        if found is None or None in {found["kafka_partition"], found["kafka_offset"]}:
            return False
        if expected is not None and expected.partition == found["kafka_partition"]:
            return False
        start = next((offset for (_, number), offset in self._committed.starts.items() if number == found["kafka_partition"]), 0)
        return self._is_compacted or (found["kafka_offset"] < start if self._table.append else start > 0)


@dataclass(frozen=True)
class Expected:
    """The record that has a row: the newest of its key, or each."""

    key: str | None
    partition: int
    offset: int
    timestamp: Any
    document: str

    def is_in(self, row: Row) -> bool:
        """Whether the row is that of the record."""
        time = row["kafka_timestamp"]
        origin = (row["kafka_key"], row["kafka_partition"], row["kafka_offset"], time and time.replace(tzinfo=None))
        document = json.loads(self.document, parse_float=_decimal)
        fields = {name: value for name, value in row.items() if name not in _ORIGIN}
        return origin == (self.key, self.partition, self.offset, self.timestamp) and _is_same(fields, document)


def _is_same(found: Any, value: Any) -> bool:  # noqa: ANN401 - what a table holds, and any JSON value
    """Whether a value of the table is that of JSON. A text may hold any value as JSON; a struct has nulls where there is no such field."""
    if isinstance(found, str):
        return found == value or (not isinstance(value, str) and _is_text_of(found, value))
    if isinstance(found, dict):
        return isinstance(value, dict) and all(_is_same(field, value.get(name)) for name, field in found.items())
    if isinstance(found, list):
        return isinstance(value, list) and len(found) == len(value) and all(map(_is_same, found, value))
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, float) and isinstance(value, int | Decimal):
        return found == float(value)
    return bool(found == value)


def _is_text_of(text: str, value: Any) -> bool:  # noqa: ANN401 - any JSON value
    try:
        return _is_equal(json.loads(text, parse_float=_decimal), value)
    except (ValueError, RecursionError):
        return False


def _decimal(number: str) -> Decimal | str:
    """The number; as it is written if its exponent is beyond those of decimals."""
    try:
        return Decimal(number)
    except InvalidOperation:
        return number


def _is_equal(found: Any, value: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Whether two values are one, of which a text may hold any as JSON.

    A number that Spark does not keep is the text of its digits. The text of what was a struct before has no nulls.
    """
    if isinstance(found, str) and not isinstance(value, str):
        return _is_text_of(found, value)
    if isinstance(found, dict) and isinstance(value, dict):
        return all(_is_equal(found.get(name), value.get(name)) for name in found.keys() | value.keys())
    if isinstance(found, list) and isinstance(value, list):
        return len(found) == len(value) and all(map(_is_equal, found, value))
    return (type(found) is type(value) and bool(found == value)) or (isinstance(found, int | Decimal) and found == value)
