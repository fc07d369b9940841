"""Verifies tables of the database: each holds the last row of each key in the result topic that it is made of.

A batch and its number are one transaction, so the table says which batch it holds.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from audit.audited import Facts, Row, Table
from audit.checks.check import Check
from audit.checks.store import Store
from audit.reading.read_range import read_range_of
from audit.reading.result_topic import rows_below
from audit.verdicts.comparison import Kind, differences, kinds_by_key
from audit.verdicts.verdict import Verdict
from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import CheckpointPlace
from contract.json_text import MAX_ID_CHARACTERS
from contract.windows import window_of

if TYPE_CHECKING:
    from infrastructure.database import Database

BATCHES = "streamgauge_batches"
"""The table with the last batch of each other one."""
Key = tuple[Any, ...]


@dataclass(frozen=True)
class DatabaseTable:
    """The table of the database that is made of the topic of `table`."""

    table: Table

    @property
    def query(self) -> str:
        return f"{self.table.query}-database"

    @property
    def facts(self) -> Facts:
        """What is taken from the records of the result topic: nothing, as its last rows are read at once."""
        return Facts(f'"{self.query}"', self.table.topic.name, 'SELECT topic, partition, "offset" FROM documents LIMIT 0')

    @property
    def name(self) -> str:
        return "".join(character if character.isascii() and character.isalnum() else "_" for character in self.table.topic.plain_name)

    @property
    def sink(self) -> str:
        return f"database table {self.name}"

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(column for name in self.table.key for column in (("window_start", "window_end") if name == "window" else (name,)))

    def by_key(self, rows: Iterable[Row]) -> dict[Key, Row]:
        return {tuple(row[name] for name in self.key): row for row in rows}


class TableState(NamedTuple):
    """The table at one moment, and the last batch in it, of that query: -1 before the first. query_id: None in a database without any table of ours."""

    query_id: str | None
    batch: int
    rows: Sequence[Row]


class DatabaseCheck(Check):
    """The check of such a table, which is read at one moment."""

    def __init__(self, result: DatabaseTable, place: CheckpointPlace, store: Store) -> None:
        self._result, self._place, self._settings = result, place, store.settings
        self.facts = []

    def prepare(self) -> None:
        from infrastructure.database import Database  # SQLAlchemy is slow to import

        self._database = Database.of(self._settings)
        self.read_range = read_range_of(self._place, partial(read, self._result.name, self._database), self._settings)

    def verdict(self) -> Verdict:
        """The rows compared, by key."""
        result, read_range, table = self._result, self.read_range, self.read_range.sink_state
        if table.query_id is None and read_range.committed >= 0:
            problem = f"{self._database} has no table of Streamgauge: set STREAMGAUGE_DATABASE_URL as it was for `streamgauge run`; if the tables were deleted, `streamgauge reset {result.query}` writes this one from the start"
            return Verdict(result.query, result.sink, problem=problem)
        batch = table.batch if table.query_id == Checkpoint(read_range.place.folder).query_id else -1
        if batch < read_range.committed:
            fault = f"the table does not hold batch {read_range.committed}, which its query has committed; `streamgauge reset {result.query}` writes it from the start"
            return read_range.verdict(result, {}, faults=[fault])
        ends = read_range.ends if batch > read_range.committed else read_range.committed_ends
        topic_rows = rows_below(result.table, ends, self._settings)
        expected = result.by_key(row for key, value in topic_rows.rows.items() if (row := flat(key, value, result)))
        renewed = result.by_key(row for key in topic_rows.later if (row := flat(key, {}, result)))
        rows = result.by_key(table.rows)
        kinds = compared(expected, rows, renewed.keys())
        wrong = differences(kinds, rows, expected, lambda key: ", ".join(map(str, key)), order=str)
        return read_range.verdict(result, Counter(kinds.values()), differences=wrong)


def read(name: str, database: "Database") -> TableState:
    """The table, by one statement and so at one moment. Raises DatabaseUnavailable and DatabaseRefuses."""
    import sqlalchemy as sa

    with database.transaction() as connection:
        inspector = sa.inspect(connection)
        if not inspector.has_table(BATCHES):
            return TableState(None, -1, [])
        if not inspector.has_table(name):
            return TableState("", -1, [])
        batches, table = (sa.Table(table_name, sa.MetaData(), autoload_with=connection) for table_name in (BATCHES, name))
        both = sa.select(batches.c.query_id, batches.c.batch, table).select_from(batches.outerjoin(table, sa.true()))
        selected = connection.execute(both.where(batches.c.table_name == name)).all()
    first = next(iter(table.primary_key.columns)).name
    rows = (dict(zip(table.c.keys(), map(_plain, row[2:]), strict=True)) for row in selected)
    return (
        TableState(selected[0].query_id, selected[0].batch, [row for row in rows if row[first] is not None])
        if selected
        else TableState("", -1, [])
    )


def _plain(value: object) -> object:
    """A value as rows of topics have it: times as text."""
    if not isinstance(value, datetime):
        return value
    time = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return time.isoformat().replace("+00:00", "Z")


def flat(key: bytes, row: object, result: DatabaseTable) -> Row | None:
    """A row as the table is to have it; None if it, or its key, was written by somebody else and is no row."""
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, dict) or parts.keys() != set(result.table.key) or not isinstance(row, Mapping):
        return None
    others = [value for name, value in parts.items() if name != "window"]
    if ("window" in parts and window_of(key) is None) or any(value is None or isinstance(value, list | dict) for value in others):
        return None
    columns = {
        **{name: value for name, value in row.items() if name not in parts},
        **{name: _shortened(value) for name, value in parts.items()},
    }
    window = columns.pop("window", None)
    edges = {f"window_{edge}": window.get(edge) for edge in ("start", "end")} if isinstance(window, Mapping) else {}
    return {name: value.replace("\0", "\ufffd") if isinstance(value, str) else value for name, value in {**columns, **edges}.items()}


def _shortened(value: Any) -> Any:  # noqa: ANN401 - a part of a key
    """A text that is too long, or has a character that no database holds, ends in its SHA-256, so that it stays unlike every other one."""
    if not isinstance(value, str) or (len(value) <= MAX_ID_CHARACTERS and "\0" not in value):
        return value
    return f"{value[: MAX_ID_CHARACTERS - 65]}\N{HORIZONTAL ELLIPSIS}{hashlib.sha256(value.encode()).hexdigest()}"


def compared(expected: Mapping[Key, Row], found: Mapping[Key, Row], renewed: Collection[Key]) -> dict[Key, Kind]:
    """What the row of each key is. renewed: keys that have a later record in the topic, for which compaction may have removed their own."""

    def is_same(row: Row, expected_row: Row) -> bool:
        # A row of an earlier version lacks columns.
        return all(_is_same(row.get(name), expected_row.get(name)) for name in row.keys() | expected_row.keys())

    return kinds_by_key(found, expected, is_same, lambda key: "not_checkable" if key in renewed else None)


def _is_same(found: Any, expected: Any) -> bool:  # noqa: ANN401 - values of rows
    """Whether two values are one. SQLite has doubles for decimals, and times have no zeros at their end."""
    if isinstance(expected, str) and isinstance(found, str) and expected.endswith("Z") and found.endswith("Z"):
        return found == expected or _moment(found) == _moment(expected)
    if isinstance(found, float) and isinstance(expected, Decimal | int):
        return found == float(expected)
    return bool(found == expected)


def _moment(text: str) -> datetime | str:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text
