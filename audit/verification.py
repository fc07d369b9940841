"""Verifies what queries have written against a recount of the records that they have committed.

The continuous audit makes the same checks again and again; here each is made once.

**The range of records.** Spark writes `offsets/N` before batch N writes its first row, and `commits/N` after its last row is in the sink. The last
committed batch N therefore fixes the records whose results, E(N), are all in the result topic. If a batch is under way, part of its results is
there, too: each key has its row of E(N) or that of E(N + 1), and either may be no row. Both are recounted, as the plan of batch N + 1 fixes its
offsets.

**The result topic** is read up to its end L, which is asked for between N and the plan of N + 1. Kafka may compact away a record below L because
of a newer one above: if a row is wrong and the topic has grown, the comparison starts over.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from audit.audited import Table
from audit.catalog import Audited
from audit.checks.archive import Archive
from audit.checks.archive_check import ArchiveCheck
from audit.checks.check import Check
from audit.checks.database_table import DatabaseCheck, DatabaseTable
from audit.checks.dead_letters import DeadLetters
from audit.checks.dead_letters_check import LettersCheck
from audit.checks.ingested import Ingested, IngestedCheck
from audit.checks.store import Store
from audit.checks.table_check import TableCheck
from audit.checks.versions import beside
from audit.reading.files import SourceFile
from audit.reading.read_range import ReadRange
from audit.reading.records import records_between
from audit.time_range import TimeRange
from audit.verdicts.verdict import Verdict
from contract.checkpoints.contents import Offsets
from contract.checkpoints.names import CheckpointPlace
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings

ATTEMPTS = 3
CHECKS: Mapping[type, Callable[..., Check]] = {
    Table: TableCheck,
    DeadLetters: LettersCheck,
    Archive: ArchiveCheck,
    Ingested: IngestedCheck,
    DatabaseTable: DatabaseCheck,
}


def has_times(result: Audited) -> bool:
    """Whether a result can be verified of a time range: its rows have windows, or are those of single records."""
    return isinstance(result, DeadLetters | Archive) or (isinstance(result, Table) and not {"window", "started"}.isdisjoint(result.key))


def verify(audited: Iterable[tuple[Audited, CheckpointPlace]], settings: Settings, span: TimeRange | None = None) -> list[Verdict]:
    """The verdict on each result, which has the checkpoint of its query. All are of one source, whose records are read once.

    span: of the rows of that time alone; each result `has_times`.
    """
    unverified, verdicts = dict(enumerate(audited)), dict[int, Verdict]()
    for _ in range(ATTEMPTS):
        with closing(Store(settings)) as store:
            doubtful = _verify_once(unverified, verdicts, store, span)
        unverified = {number: unverified[number] for number in unverified if number in doubtful}
        if not unverified:
            break
    return [verdicts[number] for number in sorted(verdicts)]


def _verify_once(
    audited: Mapping[int, tuple[Audited, CheckpointPlace]], verdicts: dict[int, Verdict], store: Store, span: TimeRange | None
) -> set[int]:
    """Sets the verdicts, and returns the numbers of wrong results that may be right at another attempt."""
    checks: dict[int, Check] = {}
    for number, (result, place) in audited.items():
        with _not_checked_on_error(result, verdicts, number):
            check = CHECKS[type(result)](result, place, store, **({} if span is None else {"span": span}))
            check.prepare()
            checks[number] = check
    try:
        facts = [facts for check in checks.values() for facts in check.facts]
        records = records_between(store.settings, *_bounds([check.read_range for check in checks.values()]))
        store.recount.load(facts, records)
    except StreamgaugeError as error:
        verdicts |= {number: Verdict(result.query, result.sink, problem=str(error)) for number, (result, _) in audited.items()}
        return set()
    for number, check in checks.items():
        result = audited[number][0]
        with _not_checked_on_error(result, verdicts, number):
            verdicts[number] = check.verdict()
            if isinstance(check, TableCheck) and isinstance(result, Table) and result.current is not None and span is None:
                verdicts[number] = replace(verdicts[number], beside=beside(result, check.rows, store.settings))
    return {number for number, check in checks.items() if verdicts[number].verdict == "wrong" and check.has_grown()}


@contextmanager
def _not_checked_on_error(result: Audited, verdicts: dict[int, Verdict], number: int) -> Iterator[None]:
    try:
        yield
    except StreamgaugeError as error:
        verdicts[number] = Verdict(result.query, result.sink, problem=str(error))


def _bounds(ranges: Iterable[ReadRange[Any]]) -> tuple[Offsets, Offsets, Mapping[str, SourceFile]]:
    """Where the records of all ranges begin and end, and their files."""
    starts: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    files: dict[str, SourceFile] = {}
    for read_range in ranges:
        files |= read_range.files
        for partition, end in read_range.ends.items():
            starts[partition] = min(starts.get(partition, end), read_range.starts[partition])
            ends[partition] = max(ends.get(partition, 0), end)
    return starts, ends, files
