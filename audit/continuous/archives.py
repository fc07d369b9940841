"""The continuous check of an archive: each file is read once, as soon as it can be. Rows that are as they must be are counted, and only the others kept.

If a file has another size, or is no longer in the table's log, all files are read again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from audit.archive import Archive, Files, Origin, kinds_of_rows
from audit.checks import shown
from audit.comparison import MOST_SHOWN, WRONG, Difference, Kind
from audit.continuous.store import Store
from audit.continuous.watch import Progress, Watch
from audit.prefix import Prefix
from audit.records import RecordReader
from audit.verdict import Verdict
from contract.checkpoints.names import CheckpointPlace
from contract.settings import Settings
from contract.storage.paths import StoragePath


@dataclass
class ArchiveProgress(Progress):
    """What is known of an archive.

    files: the sizes in bytes of those that were read, by their paths. columns: of their rows. counted: how many rows were, by kind. wrong: the first
    that are not as they must be.
    """

    files: dict[str, int] = field(default_factory=dict)
    columns: pa.Schema | None = None
    counted: Counter[Kind] = field(default_factory=Counter)
    wrong: dict[Origin, Difference] = field(default_factory=dict)


class ArchiveWatch(Watch[ArchiveProgress]):
    """The check of an archive."""

    def __init__(
        self, archive: Archive, name: str, place: CheckpointPlace, store: Store, records: RecordReader, settings: Settings
    ) -> None:
        super().__init__(name, place, store, records, settings)
        self._archive = replace(archive, facts=replace(archive.facts, name=f"facts_{name}"))
        self._expected, self._found = f"facts_{name}_hashed", f"found_{name}"

    def seen(self) -> Sequence[StoragePath]:
        return self._archive.files(self.settings)

    def has_lost(self, known: ArchiveProgress, seen: Sequence[StoragePath]) -> bool:
        """Whether the log no longer has a file that was read, as its rows are in another one now, or the file has changed."""
        paths = {str(path): path for path in seen}
        return not known.files.keys() <= paths.keys() or any(_size(paths[name]) != size for name, size in known.files.items())

    def compare(self, prefix: Prefix[Sequence[StoragePath]], known: ArchiveProgress) -> Verdict:
        """Reads what is new, and forgets the rows that are as they must be."""
        files = self._files(prefix, known)
        if files.columns != known.columns:  # the hashes that are kept are of other columns
            known = self.begin(known.query_id, prefix)
            files = self._files(prefix, known)
            known.columns = files.columns
        self.load(files.facts, prefix, known, prefix.committed_ends)
        self.store.database.execute(f"INSERT INTO {self._found} {files.hashed}")
        counts, wrong = self._compared(prefix, known)
        known.wrong = {
            record: known.wrong.get(record) or shown(self._archive, files, record, kind, prefix, self.settings)
            for record, kind in wrong.items()
        }
        known.files |= {str(path): _size(path) for path in prefix.seen if str(path) in files.readable}
        self.batches.forget(prefix.committed_ends, prefix.committed)
        self.store.keep(self.name, known)
        return prefix.verdict(self._archive, counts, differences=[*known.wrong.values()], faults=files.faults)

    def begin(self, query_id: str | None, prefix: Prefix[Any]) -> ArchiveProgress:
        for table in (self._archive.facts.name, self._expected, self._found):
            self.store.database.execute(f"DROP TABLE IF EXISTS {table}")
        self.store.database.execute(f'CREATE TABLE {self._found} (topic VARCHAR, partition INTEGER, "offset" BIGINT, content UBIGINT)')
        return ArchiveProgress(query_id, dict(prefix.kept))

    def _files(self, prefix: Prefix[Any], known: ArchiveProgress) -> Files:
        new = [path for path in prefix.seen if str(path) not in known.files]
        return Files(self._archive, replace(prefix, seen=new), self.store.database, known.columns)

    def _compared(self, prefix: Prefix[Any], known: ArchiveProgress) -> tuple[Counter[Kind], dict[Origin, Kind]]:
        """How many rows are of each kind, and the first wrong ones. Counts and forgets those that are done."""
        wrong, others, done = dict[Origin, Kind](), Counter[Kind](), list[Origin]()
        for record, kinds in kinds_of_rows(self._expected, f"FROM {self._found}", prefix, self.store.database):
            bad = [kind for kind in kinds if kind in WRONG]
            if bad:
                others.update(kinds)
                wrong |= {record: bad[0]} if len(wrong) < MOST_SHOWN else {}
            elif record[2] < prefix.committed_ends.get(record[:2], 0):
                known.counted.update(kinds)
                done.append(record)
        for table in (self._expected, self._found):
            self.store.forget(table, done)
        return known.counted + others, wrong


def _size(path: StoragePath) -> int:
    """The size in bytes, -1 if there is no such file. In an object store, which is slow to ask, 0: nobody changes a file there."""
    if not isinstance(path, Path):
        return 0
    return path.stat().st_size if path.exists() else -1
