"""What checks read and count with: the settings, one consumer and one database."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from audit.audited import Facts
from audit.reading.records import RecordReader
from audit.recount.recount import Recount, opened
from infrastructure.settings import Settings
from infrastructure.storage.temporary import temporary_folder

_ORIGIN = pa.schema({"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()})


class Store:
    """A store in memory, which puts what does not fit into STREAMGAUGE_HOME. Use it from one thread."""

    def __init__(self, settings: Settings, database: duckdb.DuckDBPyConnection | None = None) -> None:
        self.settings, self.records = settings, RecordReader(settings)
        self.database = database or opened(temporary_folder(settings.home), settings=settings)
        self.recount = Recount(self.database)
        if not isinstance(settings.lake, Path):
            self.database.register_filesystem(settings.lake.fs)

    def close(self) -> None:
        self.records.close()
        self.database.close()

    def own_facts(self, facts: Facts, name: str) -> Facts:  # noqa: ARG002 - for stores that keep them
        """The facts of the check of that name, which it may delete: here all share them, and none does."""
        return facts

    def state(self, name: str) -> Any:  # noqa: ANN401, ARG002 - what was kept
        """What was kept under that name; None if nothing was."""
        return None

    def save(self, name: str, state: object) -> None:
        """Keeps the state of a check for its next look."""

    def delete(self, table: str, records: Collection[tuple[str, int, int]]) -> None:
        """Deletes the rows of these records."""
        if records:
            self.register("done", _ORIGIN, *zip(*records, strict=True))
            same = " AND ".join(f'{table}."{name}" = done."{name}"' for name in _ORIGIN.names)
            self.database.execute(f"DELETE FROM {table} USING done WHERE {same}")

    def register(self, name: str, schema: pa.Schema, *columns: object) -> None:
        """Makes columns a table of the database, until the next one of that name."""
        self.database.register(name, pa.table(list(columns), schema=schema))
