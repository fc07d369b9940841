"""Verifies what queries have written against a recount of the records that they have committed.

It is the first look of the checks with which the continuous audit goes on: here they are forgotten after it.

**The prefix.** Spark writes `offsets/N` before batch N writes its first row, and `commits/N` after its last row is in the sink. The last
committed batch N therefore fixes a prefix of the source topic. A result topic holds everything that this prefix gives, E(N), and part of what
the batch under way gives, if there is one: then each key has its row of E(N) or its row of E(N + 1), where "no row" is a row as any other. Both
are recounted, as the plan of batch N + 1 fixes its offsets.

**The topic** is read at once, up to its end L, which is asked for between N and the plan of N + 1. Kafka may compact away a record below L because
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
from audit.reading.prefix import Prefix
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


def has_times(one: Audited) -> bool:
    """Whether a result can be verified of a time range: its rows have windows, or are those of single records."""
    return isinstance(one, DeadLetters | Archive) or (isinstance(one, Table) and not {"window", "started"}.isdisjoint(one.key))


def verify(audited: Iterable[tuple[Audited, CheckpointPlace]], settings: Settings, span: TimeRange | None = None) -> list[Verdict]:
    """The verdict on each result, which has the checkpoint of its query. All are of one source, whose records are read once.

    span: of the rows of that time alone; each result `has_times`.
    """
    left, found = dict(enumerate(audited)), dict[int, Verdict]()
    for _ in range(ATTEMPTS):
        with closing(Store(settings)) as store:
            has_grown = _looked(left, found, store, span)
        left = {number: left[number] for number in left if number in has_grown}
        if not left:
            break
    return [found[number] for number in sorted(found)]


def _looked(
    audited: Mapping[int, tuple[Audited, CheckpointPlace]], found: dict[int, Verdict], store: Store, span: TimeRange | None
) -> set[int]:
    """The numbers of those that are wrong, and may be right at another look. found: gets the verdicts."""
    checks: dict[int, Check] = {}
    for number, (one, place) in audited.items():
        with _noted(one, found, number):
            check = CHECKS[type(one)](one, place, store, **({} if span is None else {"span": span}))
            check.prepare()
            checks[number] = check
    try:
        facts = [facts for check in checks.values() for facts in check.facts]
        joined = _joined([check.prefix for check in checks.values()])
        store.recount.load(facts, records_between(store.settings, *joined))
    except StreamgaugeError as error:
        found |= {number: Verdict(one.query, one.sink, problem=str(error)) for number, (one, _) in audited.items()}
        return set()
    for number, check in checks.items():
        one = audited[number][0]
        with _noted(one, found, number):
            found[number] = check.verdict()
            if isinstance(check, TableCheck) and isinstance(one, Table) and one.current is not None and span is None:
                found[number] = replace(found[number], beside=beside(one, check.rows, store.settings))
    return {number for number, check in checks.items() if found[number].verdict == "wrong" and check.has_grown()}


@contextmanager
def _noted(one: Audited, found: dict[int, Verdict], number: int) -> Iterator[None]:
    """Turns an error into the verdict that the result is not checked."""
    try:
        yield
    except StreamgaugeError as error:
        found[number] = Verdict(one.query, one.sink, problem=str(error))


def _joined(prefixes: Iterable[Prefix[Any]]) -> tuple[Offsets, Offsets, Mapping[str, int]]:
    """Where the records of all prefixes begin and end, and when their files were changed."""
    starts: dict[tuple[str, int], int] = {}
    ends: dict[tuple[str, int], int] = {}
    modified_ms: dict[str, int] = {}
    for prefix in prefixes:
        modified_ms |= prefix.modified_ms
        for which, end in prefix.ends.items():
            starts[which] = min(starts.get(which, end), prefix.starts[which])
            ends[which] = max(ends.get(which, 0), end)
    return starts, ends, modified_ms
