"""Connects to the relational database, and says in one line why it cannot be used."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from infrastructure.errors import StreamgaugeError, Unavailable
from infrastructure.settings import Settings

VARIABLE = "STREAMGAUGE_DATABASE_URL"
FILE = ("database", "results.db")
"""The embedded database in STREAMGAUGE_HOME."""
_DRIVERS = {"postgresql": "postgresql+psycopg", "sqlite": "sqlite+pysqlite"}
_DEFAULTS = {"postgresql": {"connect_timeout": "5", "application_name": "streamgauge"}, "sqlite": {"timeout": "30"}}
_ALWAYS: Mapping[str, Mapping[str, str]] = {"postgresql": {"client_encoding": "utf8"}, "sqlite": {}}
_SESSION = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "extra_float_digits": "1",
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read committed",
}
"""Settings of PostgreSQL that change what is written or read, whatever the server, database, role or environment says."""
_LATER = ("08", "25006", "53300", "57P")
"""Beginnings of SQLSTATEs: connection exceptions, read-only as after a failover, too many connections, interventions such as a shutdown."""
_ENDED = ("40", "55P03", "57014")
"""Beginnings of SQLSTATEs: a deadlock or conflict with another transaction, a lock or a statement that took longer than allowed."""
_SOON = ("starting up", "shutting down", "recovery mode", "too many", "slots are reserved")
"""Parts of the answers of a PostgreSQL that will accept connections later."""


class DatabaseUnavailable(Unavailable):
    """The database does not answer."""

    server = "the database"


class DatabaseRefuses(StreamgaugeError):  # noqa: N818 - as KafkaRefuses
    """The database rejects a request. A person has to fix it."""


@dataclass(frozen=True)
class Database:
    """The database that STREAMGAUGE_DATABASE_URL names, or an SQLite file in STREAMGAUGE_HOME."""

    engine: Engine

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Connects to nothing yet. Raises StreamgaugeError when the package for the database is not installed."""
        if settings.database_url:
            url = make_url(settings.database_url)
        else:
            file = settings.home.absolute().joinpath(*FILE)
            file.parent.mkdir(parents=True, exist_ok=True)
            url = URL.create("sqlite", database=str(file))
        kind = url.get_backend_name()
        url = url.set(drivername=_DRIVERS[kind], query={**_DEFAULTS[kind], **url.query, **_ALWAYS[kind]})
        try:
            # Without a pool, no connection is reused that the server has closed.
            engine = create_engine(url, poolclass=NullPool, hide_parameters=True)
        except ModuleNotFoundError as error:
            msg = f"{VARIABLE} names a PostgreSQL, which needs the Python package psycopg: in the clone, `make setup` or `pip install '.[postgres]'` installs it"
            raise StreamgaugeError(msg) from error
        if kind == "sqlite":  # readers do not block a batch
            event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA journal_mode = wal"))
        else:
            event.listen(engine, "connect", _set_session)
        return cls(engine)

    def refuse_another_encoding(self) -> None:
        """Raises DatabaseRefuses for a database whose encoding does not have every character."""
        if self.engine.dialect.name != "postgresql":
            return
        with self.transaction() as connection:
            encoding = connection.execute(text("select current_setting('server_encoding')")).scalar_one()
        if encoding != "UTF8":
            msg = f"the database at {self} has the encoding {encoding}; expected UTF8: create one with `create database NAME encoding 'UTF8' template template0`, and correct {VARIABLE}"
            raise DatabaseRefuses(msg)

    def __str__(self) -> str:
        """The address, without user and password."""
        url = self.engine.url
        return URL.create(url.get_backend_name(), host=url.host, port=url.port, database=url.database).render_as_string()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction, committed at the end.

        Raises DatabaseUnavailable or DatabaseRefuses, and StreamgaugeError when another transaction or a timeout ends it; then nothing is written.
        """
        try:
            with self.engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            reason = str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
            if _is_away(error, reason):
                msg = f"the database at {self} does not answer ({reason}); start it, or correct {VARIABLE}"
                raise DatabaseUnavailable(msg) from error
            if str(getattr(getattr(error, "orig", None), "sqlstate", "")).startswith(_ENDED):
                msg = f"the database at {self} ended a transaction ({reason}); check for other transactions on the same table, and the timeouts of the database"
                raise StreamgaugeError(msg) from error
            msg = f"the database at {self} refuses ({reason}); correct {VARIABLE}, which must name a user who may create tables there and write to them"
            raise DatabaseRefuses(msg) from error


def _set_session(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
    connection.cursor().execute("; ".join(f"set {name} = '{value}'" for name, value in _SESSION.items()))
    connection.commit()


def _is_away(error: SQLAlchemyError, reason: str) -> bool:
    if state := getattr(getattr(error, "orig", None), "sqlstate", None):
        return (isinstance(error, DBAPIError) and error.connection_invalidated) or str(state).startswith(_LATER)
    if not isinstance(error, OperationalError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return "locked" in reason
    # Without a state there is no connection. If it was the server that refused it, it says FATAL.
    return "FATAL:" not in reason or any(sign in reason for sign in _SOON)
