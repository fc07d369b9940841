"""Verifies archives: every row of every file that the table's log names, all columns, by the record that it comes from."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from audit.audited import Facts
from audit.reading.lake_files import delta_files, parquet_files
from audit.reading.read_range import ReadRange
from audit.reading.records import Origin
from audit.values.paths import duckdb_paths
from audit.verdicts.comparison import MOST_SHOWN, Kind
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, asking

_ORIGIN = ("topic", "partition", "offset")
_KINDS = """
    SELECT topic, partition, "offset", sum(least(expected, found)) AS equal, sum(greatest(expected - found, 0)) AS lacking,
        sum(greatest(found - expected, 0)) AS more
    FROM (
        SELECT topic, partition, "offset", coalesce(recounted.number, 0) AS expected, coalesce(archived.number, 0) AS found
        FROM (SELECT *, count(*) AS number FROM {expected} GROUP BY ALL) AS recounted
        FULL JOIN (SELECT *, count(*) AS number FROM ({found}) GROUP BY ALL) AS archived
            USING (topic, partition, "offset", content))
    GROUP BY ALL
    ORDER BY ALL
"""
_NO_TIME = "timestamp is out of range"


@dataclass(frozen=True)
class Archive:
    """What the archive in `folder` of the lake must hold, written by `query`.

    facts: with all columns of the archive. origin_prefix: begins the names of the columns topic, partition and offset.
    documents: makes `documents` of the records, like that of Facts, if it needs the columns of the files.
    """

    query: str
    folder: str
    facts: Facts
    documents: Callable[[pa.Table, pa.Schema], pa.Table] | None = None
    origin_prefix: str = ""
    is_delta: bool = False

    @property
    def sink(self) -> str:
        return f"lake/{self.folder}"

    @property
    def in_delta(self) -> "Archive":
        facts = replace(self.facts, name=f"{self.facts.name}_delta")
        return replace(self, query=f"{self.query}-delta", folder=f"{self.folder}_delta", facts=facts, is_delta=True)

    def files(self, settings: Settings) -> list[StoragePath]:
        return (delta_files if self.is_delta else parquet_files)(settings.lake / self.folder)


class Files:
    """The files of an archive, of which some may be gone or damaged. Reads the others in `database`.

    columns: those of other files, which count for these, too, unless these have more.
    """

    def __init__(
        self,
        archive: Archive,
        read_range: ReadRange[Sequence[StoragePath]],
        database: duckdb.DuckDBPyConnection,
        columns: pa.Schema | None = None,
    ) -> None:
        self._archive, self._database, self._read_range, paths = archive, database, read_range, read_range.sink_state
        self.left_out = set[str]()
        """The columns that are not compared: DuckDB cannot read a time in them, as INT96 has it of years before -4713."""
        gone = [path for path in paths if not _exists(path)]
        damaged = self._damaged([path for path in paths if path not in gone])
        self.readable = [path for path in paths if path not in {*gone, *damaged}]
        """The other files."""
        self.faults = [
            f"files of the table that are {what}, {len(bad)}: {', '.join(map(str, bad[:MOST_SHOWN]))}"
            for what, bad in (("gone", gone), ("not readable", damaged))
            if bad
        ]
        stored = database.sql(f"FROM {self._read()} LIMIT 0").to_arrow_table().schema if self.readable else pa.schema([])
        compared = pa.schema([field for field in stored if field.name not in self.left_out])
        are_enough = (
            columns is not None
            and self.left_out.isdisjoint(columns.names)
            and {(field.name, field.type) for field in compared} <= {(field.name, field.type) for field in columns}
        )
        rows, documents, self.columns = archive.facts, archive.documents, columns if are_enough else compared
        self.rows = rows if documents is None else replace(rows, documents=lambda records: documents(records, self.columns))
        """Facts: the expected rows, with all their columns."""
        described = f"SELECT column_name, column_type FROM (DESCRIBE FROM {self._read()})"
        self._kinds: dict[str, str] = dict(database.execute(described).fetchall()) if self.readable else {}

    @property
    def facts(self) -> tuple[Facts, Facts]:
        """The facts that the comparison needs: a table without rows, for its columns; and of each row its record and a hash."""
        rows, origin = self.rows, _origin(self._archive)
        hashed = f"SELECT {origin}, hash(expected) AS content FROM ({rows.sql}) AS expected"
        return replace(rows, columns_only=True), replace(rows, name=f"{rows.name}_hashed", sql=hashed)

    @property
    def hashed(self) -> str:
        """SQL: of each row in the files, its record and a hash; null if a column has a value that its type cannot hold. Partition -1: of no record."""
        found, origin = self._found(), self._archive.origin_prefix
        if not self.readable:
            return f"SELECT {_origin(self._archive)}, hash(found) AS content FROM ({found}) AS found"
        topic, partition, offset = (f'found."{origin}{name}"' for name in _ORIGIN)
        is_lost = f"{topic} IS NULL OR {partition} IS NULL OR {offset} IS NULL"
        record = f"coalesce({topic}, '') AS topic, if({is_lost}, -1, {partition}) AS partition, if({is_lost}, 0, {offset}) AS \"offset\""
        columns = self._columns()
        row = ", ".join(f'"{name}" := TRY_CAST({source} AS {kind})' for name, kind, source in columns)
        odd = [
            f"({source} IS NOT NULL AND TRY_CAST({source} AS {kind}) IS NULL)"
            for name, kind, source in columns
            if self._kinds.get(name, kind) != kind
        ]
        return f"""
            SELECT {record}, if(is_odd, NULL, hash(found)) AS content
            FROM (
                SELECT struct_pack({row}) AS found, {" OR ".join(odd) or "false"} AS is_odd
                FROM {self._read()} AS rows WHERE {self._bounds})
        """

    def rows_of(self, record: Origin) -> list[Mapping[str, Any]]:
        return rows_of(self._archive, f"({self._found()})", record, self._database)

    def _found(self) -> str:
        """SQL: all rows, with the expected columns and types. Of a column that no file has, all have null."""
        if not self.readable:
            return f"SELECT * FROM {self.rows.name} LIMIT 0"
        selected = ", ".join(f'TRY_CAST({source} AS {kind}) AS "{name}"' for name, kind, source in self._columns())
        return f"SELECT {selected} FROM {self._read()} AS rows WHERE {self._bounds}"

    def _columns(self) -> list[tuple[str, str, str]]:
        """The expected columns: name, type, and SQL of what a file holds."""
        columns = self._database.execute(f"SELECT column_name, column_type FROM (DESCRIBE {self.rows.name})").fetchall()
        return [(name, kind, f'rows."{name}"' if name in self._kinds.keys() - self.left_out else "NULL") for name, kind in columns]

    @property
    def _bounds(self) -> str:
        """SQL: whether a row of files may be of the records that are compared. Parquet's statistics keep other parts of files from being read."""
        read_range, name = self._read_range, f'rows."{self._archive.origin_prefix}offset"'
        if not (read_range.is_part and read_range.ends):
            return "true"
        return f"{name} >= {min(read_range.first_offsets.get(partition, 0) for partition in read_range.ends)} AND {name} < {max(read_range.ends.values())}"

    def _damaged(self, paths: Sequence[StoragePath]) -> list[StoragePath]:
        """The files without a footer, or with pages that do not have their checksums. All are read at once, and one by one only if that fails."""
        return [path for path in paths if not self._is_readable(path)] if paths and self._error_in(paths) else []

    def _is_readable(self, path: StoragePath) -> bool:
        if _NO_TIME not in (error := self._error_in([path])):
            return not error
        columns = self._database.execute("SELECT column_name FROM (DESCRIBE FROM read_parquet(?))", duckdb_paths([path])).fetchall()
        errors = {name: self._error_in([path], f"""rows."{name.replace('"', '""')}" """) for (name,) in columns}
        self.left_out |= {name for name, error in errors.items() if _NO_TIME in error}
        return all(not error or name in self.left_out for name, error in errors.items())

    def _error_in(self, paths: Sequence[StoragePath], columns: str = "rows") -> str:
        """DuckDB's error when it reads these columns of the files; empty without one."""
        sql = f"SELECT bit_xor(hash({columns})) FROM read_parquet(?, union_by_name = true) AS rows WHERE {self._bounds}"
        try:
            # Not in a transaction of the connection, which an error would end.
            self._database.cursor().execute(sql, [duckdb_paths(paths)])
        except duckdb.Error as error:
            return str(error)
        return ""

    def _read(self) -> str:
        listed = ", ".join("'{}'".format(path.replace("'", "''")) for path in duckdb_paths(self.readable))
        return f"read_parquet([{listed}], union_by_name = true, hive_partitioning = true, hive_types_autocast = false)"


def kinds_of_rows(
    expected: str, found: str, read_range: ReadRange[Any], database: duckdb.DuckDBPyConnection
) -> Iterator[tuple[Origin, Counter[Kind]]]:
    """The kinds of the rows of each record. expected: the table of hashes that must be there; found: SQL of those in the files."""
    for topic, partition, offset, *numbers in database.execute(_KINDS.format(expected=expected, found=found)).fetchall():
        if not read_range.leaves_out((topic, partition), offset):
            yield (topic, partition, offset), _kinds((topic, partition), offset, *numbers, read_range=read_range)


def rows_of(archive: Archive, table: str, record: Origin, database: duckdb.DuckDBPyConnection) -> list[Mapping[str, Any]]:
    """The rows of a record in a table of the database, which has the columns of the archive."""
    condition = " AND ".join(f'"{archive.origin_prefix}{name}" = ?' for name in _ORIGIN)
    rows: list[Mapping[str, Any]] = database.sql(f"FROM {table} WHERE {condition}", params=list(record)).to_arrow_table().to_pylist()
    return rows


def _origin(archive: Archive) -> str:
    """SQL: the columns that tell the record."""
    return ", ".join(f'"{archive.origin_prefix}{name}" AS "{name}"' for name in _ORIGIN)


def _kinds(partition: tuple[str, int], offset: int, equal: int, lacking: int, more: int, *, read_range: ReadRange[Any]) -> Counter[Kind]:
    """What the rows of a record are. Those of a batch under way may be there; those of records that are gone are not checkable."""
    if offset < read_range.starts.get(partition, 0):
        return Counter({"not_checkable": equal + more})
    if read_range.committed_ends.get(partition, 0) <= offset and (offset < read_range.ends.get(partition, 0) or not equal + more):
        return Counter()
    different = min(lacking, more)
    found: Counter[Kind] = Counter({"equal": equal, "different": different, "missing": lacking - different, "extra": more - different})
    return +found


def _exists(path: StoragePath) -> bool:
    with asking(path):
        return path.exists()
