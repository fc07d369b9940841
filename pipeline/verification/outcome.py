"""The result of verifying one query."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Verdict = Literal["right", "wrong", "not checked", "not run"]
Kind = Literal["missing", "extra", "different"]
WRONG = get_args(Kind)
MAX_DIFFERENCES = 5
"""The number of differences that are shown with both values."""


def first_of(paths: Sequence[object]) -> str:
    """The first of the paths, and how many more there are."""
    more = len(paths) - MAX_DIFFERENCES
    return ", ".join(map(str, paths[:MAX_DIFFERENCES])) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class RowCounts:
    """Row counts. Each row is counted in exactly one field.

    missing: expected, but not in the sink. extra: in the sink, but not expected. different: in both, with different values. The other four
    are not errors: expired, not_checkable (the source has lost the records they derive from), unknown_lateness (it is unknown whether a record was
    late), ahead (in real-time mode: it is unknown how many of the records after the last checkpoint they count).
    """

    equal: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    expired: int = 0
    not_checkable: int = 0
    unknown_lateness: int = 0
    ahead: int = 0

    @property
    def by_kind(self) -> dict[str, int]:
        """All fields, after `compared`: their sum."""
        return {"compared": sum(asdict(self).values()), **asdict(self)}

    @property
    def wrong(self) -> int:
        """The number of missing, extra and different rows."""
        return self.missing + self.extra + self.different


@dataclass(frozen=True)
class Lateness:
    """The rows that the stream dropped as late.

    rows: usable rows in the prefix. events: distinct events in them; a late row of an event that was counted loses nothing.
    late_rows: rows dropped. late_events: events not counted because all their rows were dropped. unknown_rows: rows whose lateness is
    unknown.
    wrongly_late_events: events not counted because rows were dropped that were in time on their own partition.
    """

    rows: int = 0
    events: int = 0
    late_rows: int = 0
    late_events: int = 0
    unknown_rows: int = 0
    wrongly_late_events: int = 0


@dataclass(frozen=True)
class Difference:
    """A wrong row. where: its key, or its record of origin. expected, found: the row; None if absent."""

    kind: Kind
    where: str
    expected: Any
    found: Any


@dataclass(frozen=True)
class Beside:
    """How the rows of a new version differ from the current ones, which is no error.

    sink: where the current rows are. until: the windows compared ended by then (ISO 8601, UTC); None if the rows have no windows. rows:
    their counts: missing ones are only in the current table, extra ones only in the new one. differences: the first of them; expected is the
    current row.
    """

    sink: str
    until: str | None
    rows: RowCounts
    differences: Sequence[Difference] = ()


@dataclass(frozen=True)
class Outcome:
    """The result of verifying one query.

    sink: what was compared. batch: the last committed batch. records: source records in the prefix. problem: why the query could not be
    verified. faults: errors other than wrong rows. notes: lines for the user. beside: of a new version, the comparison with the current one.
    """

    query: str
    sink: str
    source: str
    batch: int = -1
    records: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    lateness: Lateness | None = None
    differences: Sequence[Difference] = ()
    faults: Sequence[str] = ()
    notes: Sequence[str] = ()
    beside: Beside | None = None
    problem: str | None = None
    has_run: bool = True

    @property
    def verdict(self) -> Verdict:
        """The verdict in one word."""
        if not self.has_run:
            return "not run"
        if self.problem is not None:
            return "not checked"
        return "wrong" if self.rows.wrong or self.faults else "right"
