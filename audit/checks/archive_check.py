"""The check of an archive. Each file is read once. Correct rows are counted and then deleted.

If a file has another size, or is no longer in the table's log, all files are read again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from audit.audited import Row
from audit.checks.archive import Archive, Files, kinds_of_rows, rows_of
from audit.checks.check import IncrementalCheck, Progress
from audit.checks.dead_letters import record_named
from audit.checks.store import Store
from audit.reading.records import Origin, records_between
from audit.recount.recount import Recount, opened
from audit.time_range import TimeRange
from audit.verdicts.comparison import MOST_SHOWN, WRONG, Difference, Kind
from audit.verdicts.verdict import Verdict
from contract.checkpoints.contents import Offsets
from contract.checkpoints.names import CheckpointPlace
from infrastructure.storage.paths import StoragePath


@dataclass
class ArchiveProgress(Progress):
    """How far the check of an archive has come.

    files: the sizes in bytes of those that were read, by their paths. columns: of their rows. counted: the number of rows, by kind. wrong: the
    first wrong rows.
    """

    files: dict[str, int] = field(default_factory=dict)
    columns: pa.Schema | None = None
    counted: Counter[Kind] = field(default_factory=Counter)
    wrong: dict[Origin, Difference] = field(default_factory=dict)


class ArchiveCheck(IncrementalCheck[ArchiveProgress]):
    """The check of an archive. span: only of the rows of records with Kafka timestamps within it."""

    def __init__(self, archive: Archive, place: CheckpointPlace, store: Store, span: TimeRange | None = None) -> None:
        super().__init__(archive.sink, place, store, span)
        self._archive = replace(archive, facts=store.own_facts(archive.facts, self.name))
        self._expected, self._found = f"{self._archive.facts.name}_hashed", f"found_{self.name}"
        self._done: list[Origin] = []

    def read_sink(self) -> Sequence[StoragePath]:
        return self._archive.files(self.settings)

    @property
    def ends(self) -> Offsets:
        return self.read_range.committed_ends

    def sink_has_lost_rows(self) -> bool:
        """Whether the log no longer has a file that was read, as its rows are in another one now, or the file has changed."""
        files, paths = self.progress.files, {str(path): path for path in self.read_range.sink_state}
        return not files.keys() <= paths.keys() or any(_size(paths[name]) != size for name, size in files.items())

    def start_over(self, query_id: str | None) -> ArchiveProgress:
        for table in (self._archive.facts.name, self._expected, self._found):
            self.store.database.execute(f"DROP TABLE IF EXISTS {table}")
        self.store.database.execute(f'CREATE TABLE {self._found} (topic VARCHAR, partition INTEGER, "offset" BIGINT, content UBIGINT)')
        return ArchiveProgress(query_id, dict(self.read_range.retained_offsets))

    def read(self) -> None:
        """Finds the new files."""
        files = self._new_files()
        if self.progress.columns is not None and files.columns != self.progress.columns:  # the hashes that are kept are of other columns
            self.progress = self.start_over(self.progress.query_id)
            files = self._new_files()
        self.progress.columns = files.columns
        self._files, self.facts = files, files.facts

    def verdict(self) -> Verdict:
        """Compares the rows by their records."""
        progress, files = self.progress, self._files
        self.store.database.execute(f"INSERT INTO {self._found} {files.hashed}")
        counts, wrong = self._compared()
        progress.wrong = {record: progress.wrong.get(record) or self._shown(record, kind) for record, kind in wrong.items()}
        left_out = (
            f"not compared, because DuckDB cannot read a time in them that is before the year -4713: {', '.join(sorted(files.left_out))}"
        )
        notes = [left_out] if files.left_out else []
        return self.read_range.verdict(self._archive, counts, notes, differences=[*progress.wrong.values()], faults=files.faults)

    def save(self) -> None:
        """Saves which files were read, and deletes the correct rows."""
        progress, read_range = self.progress, self.read_range
        for table in (self._expected, self._found):
            self.store.delete(table, self._done)
        progress.files |= {str(path): _size(path) for path in self._files.readable}
        self.batches.forget(read_range.committed_ends, read_range.committed)
        self.store.save(self.name, progress)

    def _new_files(self) -> Files:
        new = [path for path in self.read_range.sink_state if str(path) not in self.progress.files]
        return Files(self._archive, replace(self.read_range, sink_state=new), self.store.database, self.progress.columns)

    def _compared(self) -> tuple[Counter[Kind], dict[Origin, Kind]]:
        """How many rows are of each kind, and the first wrong ones. Counts those that are done."""
        wrong, others = dict[Origin, Kind](), Counter[Kind]()
        self._done = []
        for record, kinds in kinds_of_rows(self._expected, f"FROM {self._found}", self.read_range, self.store.database):
            bad = [kind for kind in kinds if kind in WRONG]
            if bad:
                others.update(kinds)
                wrong |= {record: bad[0]} if len(wrong) < MOST_SHOWN else {}
            elif record[2] < self.read_range.committed_ends.get(record[:2], 0):
                self.progress.counted.update(kinds)
                self._done.append(record)
        return self.progress.counted + others, wrong

    def _shown(self, record: Origin, kind: Kind) -> Difference:
        """The rows of a record that are wrong. The record is read again: of the others, only hashes are kept."""
        partition, offset, facts, expected = record[:2], record[2], self._files.rows, list[Row]()
        if partition in self.read_range.ends:
            recount = Recount(opened(settings=self.settings))
            recount.load([facts], records_between(self.settings, {partition: offset}, {partition: offset + 1}, self.read_range.files))
            expected = rows_of(self._archive, facts.name, record, recount.database)
        return Difference(kind, record_named(record), _all(expected), _all(self._files.rows_of(record)))


def _all(rows: Sequence[Row]) -> object:
    """The row of a record, all of its rows if there are several, or None."""
    return rows[0] if len(rows) == 1 else rows or None


def _size(path: StoragePath) -> int:
    """The size in bytes, -1 if there is no such file. In an object store, which is slow to ask, 0: nobody changes a file there."""
    if not isinstance(path, Path):
        return 0
    return path.stat().st_size if path.exists() else -1
