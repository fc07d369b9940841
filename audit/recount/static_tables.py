"""The static tables that streams are joined with (docs/files.md), as tables of DuckDB. A table that queries refuse is refused."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from audit.values.paths import duckdb_paths
from contract.static_tables import files_of, static_tables
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

_COLUMNS = {
    "device_locations": {"device_id": "VARCHAR", "zip_code": "VARCHAR"},
    "taxi_zone_lookup": {"LocationID": "INTEGER", "Borough": "VARCHAR", "Zone": "VARCHAR"},
}
"""The columns that a table must have, and their types. The first identifies a row."""
_BAD_KEYS = """
    SELECT {key}, count(*) FROM {table} GROUP BY {key}
    HAVING count(*) > 1 OR TRY_CAST({key} AS {kind}) IS NULL
    ORDER BY {key} LIMIT 1
"""


def create_static_tables(database: duckdb.DuckDBPyConnection, settings: Settings | None) -> None:
    """Creates each table under the name of its file in `data/`. settings: those that may name other files. Raises StreamgaugeError."""
    for table, path in static_tables().items():
        _create(table, files_of(table, settings) if settings else [path], database)


def _create(table: str, files: Sequence[Path], database: duckdb.DuckDBPyConnection) -> None:
    # Without these, DuckDB guesses: a line that begins with # is a comment, and a file with a short line has a single column.
    dialect = """delim = ',', quote = '"', escape = '"', comment = '', skip = 0, null_padding = true, strict_mode = false"""
    quoted = ["'" + path.replace("'", "''") + "'" for path in duckdb_paths(files)]
    columns = _COLUMNS.get(table, {})
    try:
        for file, name in zip(files, quoted, strict=True):
            found = database.sql(f"FROM read_csv({name}, header = true, all_varchar = true, {dialect}) LIMIT 0").columns
            if lacking := [column for column in columns if column not in found]:
                msg = f"static table {table} lacks {', '.join(lacking)}: {file} has the columns {', '.join(found)}; expected {', '.join(columns)}"
                raise StreamgaugeError(msg)
        read = f"read_csv([{', '.join(quoted)}], header = true, all_varchar = true, union_by_name = true, {dialect})"
        database.execute(f"CREATE TABLE {table} AS SELECT coalesce(COLUMNS(*), '') FROM {read}")
    except duckdb.Error as error:
        msg = f"static table {table} cannot be read ({str(error).partition(chr(10))[0]}); expected CSV in UTF-8, with commas and the names of its columns"
        raise StreamgaugeError(msg) from error
    key, kind = next(iter(columns.items()), ("", ""))
    if key and (bad := database.execute(_BAD_KEYS.format(table=table, key=key, kind=kind)).fetchall()):
        ((value, number),) = bad
        what = "is no number" if number == 1 else "is there more than once"
        msg = f"static table {table}: {key} {value!r} {what}; correct {', '.join(map(str, files))}"
        raise StreamgaugeError(msg)
