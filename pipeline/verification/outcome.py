"""What the verification of one query found."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["right", "wrong", "not checked", "not run"]
Kind = Literal["missing", "extra", "different"]
MOST_DIFFERENCES = 5
"""So many differences are shown with both values."""


@dataclass(frozen=True)
class RowCounts:
    """How many rows, each counted in one of these.

    missing: expected, not in the sink. extra: in the sink, not expected. different: in both, with other values. The next three are no
    errors: expired, not_checkable (the source has lost what they were made of), untold (whether a record was late is not known).
    """

    equal: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    expired: int = 0
    not_checkable: int = 0
    untold: int = 0

    @property
    def compared(self) -> int:
        """All of them."""
        return self.equal + self.wrong + self.expired + self.not_checkable + self.untold

    @property
    def wrong(self) -> int:
        """Those that should not be so."""
        return self.missing + self.extra + self.different


@dataclass(frozen=True)
class Lateness:
    """What the stream dropped because it came too late.

    rows: usable rows in the prefix. events: how many different ones they state; a late row of an event that has counted loses nothing.
    late_rows: those dropped. late_events: events that count nowhere because every row of theirs was dropped.
    untold_rows: those of which it is not known. wrongly_late_events: events that count nowhere because rows were dropped that were in time on
    their own partition.
    """

    rows: int = 0
    events: int = 0
    late_rows: int = 0
    late_events: int = 0
    untold_rows: int = 0
    wrongly_late_events: int = 0


@dataclass(frozen=True)
class Difference:
    """One row that is wrong. where: its key, or the record it comes from. expected, found: the row, None where there is none."""

    kind: Kind
    where: str
    expected: Any
    found: Any


@dataclass(frozen=True)
class Cut:
    """Records of a partition that the query has counted, from `first`, and that the topic has no longer, up to before `earliest`."""

    partition: str
    first: int
    earliest: int


@dataclass(frozen=True)
class Outcome:
    """What was found of one query.

    sink: what was compared. batch: the last committed one. records: of the source, in the prefix. problem: why it could not be checked.
    faults: what is wrong besides rows. notes: lines that a person should know.
    """

    query: str
    sink: str
    source: str
    batch: int = -1
    records: int = 0
    rows: RowCounts = field(default_factory=RowCounts)
    lateness: Lateness | None = None
    cuts: Sequence[Cut] = ()
    differences: Sequence[Difference] = ()
    faults: Sequence[str] = ()
    notes: Sequence[str] = ()
    problem: str | None = None
    has_run: bool = True

    @property
    def verdict(self) -> Verdict:
        """In a word."""
        if not self.has_run:
            return "not run"
        if self.problem is not None:
            return "not checked"
        return "wrong" if self.rows.wrong or self.faults else "right"
