"""A table with one row per key, and how far it has been written: exactly once, because both are one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa
from pyspark.sql import types as T  # noqa: N812
from sqlalchemy.dialects import postgresql, sqlite

from contract.json_text import MAX_ID_CHARACTERS
from infrastructure.database import Database, DatabaseRefuses
from pipeline.database.changes import IS_DELETED
from pipeline.sinks.sink import out_of_step

BATCHES = sa.Table(
    "streamgauge_batches",
    sa.MetaData(),
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("query_id", sa.Text, nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("written_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
)
"""The last batch in each table. query_id: of the checkpoint that the batch belongs to."""
_ROWS_AT_ONCE = 10_000
_TYPES: Mapping[type[T.DataType], Any] = {
    T.StringType: sa.Text(),
    T.BooleanType: sa.Boolean(),
    T.IntegerType: sa.Integer(),
    T.LongType: sa.BigInteger(),
    T.DoubleType: sa.Double(),
    T.DateType: sa.Date(),
    T.TimestampType: sa.DateTime(timezone=True),
}
_INSERT: Mapping[str, Callable[[sa.Table], postgresql.Insert | sqlite.Insert]] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class TableSnapshot(NamedTuple):
    """A table at one moment, with its last batch: -1, of no query, before the first."""

    query_id: str
    batch: int
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class KeyedTable:
    """Table `name` with `columns`, of which `key` is the primary key. query: the streaming query that writes it."""

    database: Database
    name: str
    columns: T.StructType
    key: Sequence[str]
    query: str

    @cached_property
    def table(self) -> sa.Table:
        columns = [sa.Column(field.name, self._type(field), primary_key=field.name in self.key) for field in self.columns]
        return sa.Table(self.name, sa.MetaData(), *columns)

    def _type(self, field: T.StructField) -> Any:  # noqa: ANN401 - a type of SQLAlchemy
        if isinstance(field.dataType, T.DecimalType):
            # SQLite has no decimal numbers.
            return sa.Numeric(field.dataType.precision, field.dataType.scale).with_variant(sa.Double(), "sqlite")
        if isinstance(field.dataType, T.StringType) and field.name in self.key:
            return sa.String(MAX_ID_CHARACTERS)
        return _TYPES[type(field.dataType)]

    def prepare(self) -> None:
        """Creates the table if it does not exist.

        Raises DatabaseUnavailable, and DatabaseRefuses also for a table of that name that is not this one, and for an encoding other than UTF-8.
        """
        self.database.refuse_another_encoding()
        with self.database.transaction() as connection:
            BATCHES.create(connection, checkfirst=True)
            is_ours = connection.execute(self._entry).first() is not None
            if not sa.inspect(connection).has_table(self.name):
                connection.execute(self._no_entry)
                connection.execute(BATCHES.insert().values(table_name=self.name, query_id="", batch=-1))
                self.table.create(connection)
                return
            if not is_ours:
                msg = f"{self.database} has a table {self.name} that Streamgauge did not create; rename it, or choose another database"
                raise DatabaseRefuses(msg)
            connection.execute(sa.update(BATCHES).where(self._is_entry).values(table_name=self.name))  # is it writable?

    def write(self, changes: pa.Table, query_id: str, batch: int) -> None:
        """Writes batch `batch` of the checkpoint with that id, unless it is already written. Batch 0 replaces all rows.

        changes: the columns, and IS_DELETED; each key once. Raises DatabaseUnavailable, and DatabaseRefuses also when the table does not hold
        the batch before this one.
        """
        with self.database.transaction() as connection:
            if not self._is_next(connection, query_id, batch):
                return
            if batch == 0:
                self._empty(connection)
            upsert = _INSERT[self.database.engine.dialect.name](self.table)
            values = {name: upsert.excluded[name] for name in self.columns.names if name not in self.key}
            upsert = upsert.on_conflict_do_update(index_elements=list(self.key), set_=values) if values else upsert.on_conflict_do_nothing()
            deletion = self.table.delete().where(*(self.table.c[name] == sa.bindparam(name) for name in self.key))
            for statement, is_deletion in ((upsert, False), (deletion, True)):
                rows = changes.filter(pc.field(IS_DELETED) == is_deletion).drop_columns(IS_DELETED)
                for chunk in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
                    connection.execute(statement, chunk.to_pylist())

    def _empty(self, connection: sa.Connection) -> None:
        """Deletes all rows. Creates the table again if the query has got other columns."""
        described = sa.inspect(connection).get_columns(self.name)
        if [column["name"] for column in described] == self.columns.names:
            connection.execute(self.table.delete())
        else:
            self.table.drop(connection)
            self.table.create(connection)

    def _is_next(self, connection: sa.Connection, query_id: str, batch: int) -> bool:
        """Records `batch` as the last one. False if it already is. Locks the entry until the end of the transaction."""
        batches = BATCHES.c
        follows = (batches.query_id == query_id) & (batches.batch == batch - 1) if batch else batches.query_id != query_id
        update = sa.update(BATCHES).where(batches.table_name == self.name, follows)
        if connection.execute(update.values(query_id=query_id, batch=batch, written_at=sa.func.now())).rowcount:
            return True
        last = connection.execute(self._entry).one()
        if (last.query_id, last.batch) == (query_id, batch):
            return False
        raise DatabaseRefuses(out_of_step(self.query, f"table {self.name} of {self.database}", last.batch, batch - 1))

    def read(self) -> TableSnapshot:
        """The table, by one statement and so at one moment. Raises DatabaseUnavailable and DatabaseRefuses."""
        if not self.exists():
            return TableSnapshot("", -1, [])
        entry = BATCHES.alias("entry")
        both = sa.select(entry.c.query_id, entry.c.batch, self.table).select_from(entry.outerjoin(self.table, sa.true()))
        with self.database.transaction() as connection:
            entries = connection.execute(both.where(entry.c.table_name == self.name)).all()
        rows = [{field.name: _value(value, field.dataType) for field, value in zip(self.columns, row[2:], strict=True)} for row in entries]
        return TableSnapshot(entries[0].query_id, entries[0].batch, [row for row in rows if row[self.key[0]] is not None])

    def exists(self) -> bool:
        """Whether the table exists and is one of Streamgauge's. Raises DatabaseUnavailable and DatabaseRefuses."""
        with self.database.transaction() as connection:
            exist = [sa.inspect(connection).has_table(name) for name in (BATCHES.name, self.name)]
            return all(exist) and connection.execute(self._entry).first() is not None

    def drop(self) -> None:
        with self.database.transaction() as connection:
            connection.execute(self._no_entry)
            self.table.drop(connection)

    @property
    def _is_entry(self) -> sa.ColumnElement[bool]:
        return BATCHES.c.table_name == self.name

    @property
    def _entry(self) -> sa.Select[Any]:
        return sa.select(BATCHES).where(self._is_entry)

    @property
    def _no_entry(self) -> sa.Delete:
        return sa.delete(BATCHES).where(self._is_entry)


def _value(value: Any, kind: T.DataType) -> Any:  # noqa: ANN401 - any value of a row
    """The value as it was written. SQLite keeps neither time zones nor decimals."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return round(Decimal(value), kind.scale) if isinstance(kind, T.DecimalType) and isinstance(value, float) else value
