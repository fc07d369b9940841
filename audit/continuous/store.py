"""The file in which the continuous audit saves its progress. Each check is one transaction, so a kill leaves none half done."""

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import audit
import contract
import infrastructure
from audit.audited import Facts
from audit.catalog import of_domains
from audit.checks.store import Store
from audit.recount.recount import opened
from contract.static_tables import files_of, static_tables
from infrastructure.errors import StreamgaugeError
from infrastructure.process.locks import alone
from infrastructure.settings import Settings
from infrastructure.storage.temporary import temporary_folder

MEMORY_LIMIT = "100MB"
_STATES = "states"
_REFUSED = ("?", "\\")
"""Characters of paths that DuckDB does not open as they are."""


class StoreFile(Store):
    """The file of STREAMGAUGE_HOME. It is made anew when it is damaged, or of other rules: other code, static tables or settings.

    Use it from one thread. Raises InUse if another process has it.
    """

    def __init__(self, settings: Settings) -> None:
        self.file = settings.home.absolute() / "audit" / "audit.duckdb"
        if refused := [character for character in _REFUSED if character in str(self.file)]:
            msg = f"DuckDB cannot open {self.file}, because the path contains {refused[0]}; choose a STREAMGAUGE_HOME without it"
            raise StreamgaugeError(msg)
        self._alone = ExitStack()
        refusal = f"an audit already runs in {settings.home}: one is enough; stop that one, or choose another STREAMGAUGE_HOME"
        self._alone.enter_context(alone(self.file.with_name("lock"), refusal))
        super().__init__(settings, self._opened(settings, temporary_folder(settings.home)))

    def close(self) -> None:
        super().close()
        self._alone.close()

    def own_facts(self, facts: Facts, name: str) -> Facts:
        """The facts in a table of their own, as each check deletes those that it needs no longer."""
        return replace(facts, name=f"facts_{name}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keeps all that is done in it, or after an error nothing."""
        self.database.begin()
        try:
            yield
        except BaseException:
            self.database.rollback()
            raise
        self.database.commit()

    def state(self, name: str) -> Any:  # noqa: ANN401 - what was kept
        """What was kept under that name; None if nothing was."""
        found = self.database.execute(f"SELECT content FROM {_STATES} WHERE name = ?", [name]).fetchall()
        return pickle.loads(found[0][0]) if found else None  # noqa: S301 - this program wrote it

    def save(self, name: str, state: object) -> None:
        self.database.execute(f"DELETE FROM {_STATES} WHERE name = ?", [name])
        self.database.execute(f"INSERT INTO {_STATES} VALUES (?, ?)", [name, pickle.dumps(state)])

    def _opened(self, settings: Settings, spill: Path) -> duckdb.DuckDBPyConnection:
        wanted, reason = rules(settings), ""
        for _ in range(2):
            is_new, database = not self.file.exists(), None
            try:
                database = opened(spill, self.file, MEMORY_LIMIT, settings)
                database.execute("SET threads = 1")
                if is_new:  # the rules last: a file without them is not whole
                    database.execute(f"CREATE TABLE {_STATES} (name VARCHAR, content BLOB)")
                    database.execute(f"INSERT INTO {_STATES} VALUES ('rules', ?)", [wanted.encode()])
                if database.execute(f"SELECT content FROM {_STATES} WHERE name = 'rules'").fetchall() == [(wanted.encode(),)]:
                    return database
            except duckdb.Error as error:
                reason = str(error).partition("\n")[0]
            if database is not None:  # while it is open, DuckDB would open it again instead of the new file
                database.close()
            for path in (self.file, self.file.with_name(f"{self.file.name}.wal")):
                path.unlink(missing_ok=True)
        msg = f"DuckDB cannot make {self.file}, in which the audit keeps its progress: {reason}"
        raise StreamgaugeError(msg)


def rules(settings: Settings) -> str:
    """A hash of everything that determines the expected rows: code, static tables, settings, and the addresses of Kafka and the lake."""
    found = hashlib.sha256(duckdb.__version__.encode())
    for package in (audit, contract, infrastructure):
        for path in sorted(path for path in Path(package.__file__ or "").parent.rglob("*") if path.suffix in {".py", ".sql"}):
            found.update(path.read_bytes())
    for path in (path for table in static_tables() for path in files_of(table, settings)):
        found.update(path.read_bytes())
    places = settings.kafka_bootstrap_servers, settings.lake_uri
    known = [_plain(one) for one in (*of_domains(settings), settings.partition_skew, settings.result_retention, *places)]
    found.update(repr(known).encode())
    return found.hexdigest()


def _plain(value: Any) -> object:  # noqa: ANN401 - a result, or a part of it
    """The value in a form whose text is the same in each process. Of a function, the name and arguments: its code is hashed elsewhere."""
    if isinstance(value, partial):
        return [_plain(one) for one in (value.func, value.args, value.keywords)]
    if is_dataclass(value):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | None) else getattr(value, "__qualname__", type(value).__qualname__)
