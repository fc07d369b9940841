"""What was found of a query."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, Self

from audit.verdicts.comparison import MOST_SHOWN, Difference, Kind


@dataclass(frozen=True)
class RowCounts:
    """Row counts, by kind: each row is counted in exactly one field.

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

    @classmethod
    def of(cls, counts: Mapping[Kind, int]) -> Self:
        """The counts of these kinds, and none of the others."""
        return cls(**{str(kind): number for kind, number in counts.items()})

    @property
    def by_kind(self) -> dict[str, int]:
        """All fields, after `compared`: their sum."""
        return {"compared": sum(asdict(self).values()), **asdict(self)}

    @property
    def wrong(self) -> int:
        """The number of missing, extra and different rows."""
        return self.missing + self.extra + self.different

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(**(Counter(asdict(self)) + Counter(asdict(other))))


@dataclass(frozen=True)
class Lateness:
    """The rows that the stream dropped because they came too late.

    rows: usable rows in the prefix. events: distinct events in them; a dropped row of an event that was counted loses nothing.
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
class Beside:
    """How the rows of a new version differ from the current ones, which is no error.

    sink: where the current rows are. until: the windows compared ended by then; None if the rows have no windows. rows: missing ones are
    only in the current table, extra ones only in the new one. differences: the first of them; expected is the current row.
    """

    sink: str
    until: str | None
    rows: RowCounts
    differences: Sequence[Difference] = ()


@dataclass(frozen=True)
class Verdict:
    """What was found of a query.

    sink: what was compared. batch: the last committed one. records: those that were recounted. lateness: None for a query that drops no late
    rows. differences: the first wrong rows. faults: errors other than wrong rows. notes: lines for the user. beside: of a new version, the
    comparison with the current one. problem: why it is not checked.
    """

    query: str
    sink: str
    batch: int = -1
    records: int = 0
    rows: RowCounts = field(default=RowCounts())
    lateness: Lateness | None = None
    differences: Sequence[Difference] = ()
    faults: Sequence[str] = ()
    notes: Sequence[str] = ()
    beside: Beside | None = None
    problem: str | None = None

    @property
    def verdict(self) -> Literal["right", "wrong", "not checked"]:
        """The verdict in one word."""
        if self.rows.wrong or self.faults:
            return "wrong"
        return "right" if self.problem is None else "not checked"

    @property
    def has_no_batch(self) -> bool:
        """Whether it was checked before the query finished its first batch."""
        return self.batch < 0 and self.problem is None


def merged(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on a query, of those on all that it writes."""
    first = verdicts[0]
    return replace(
        first,
        sink=" and ".join(dict.fromkeys(verdict.sink for verdict in verdicts)),
        batch=min(verdict.batch for verdict in verdicts),
        rows=sum((verdict.rows for verdict in verdicts), RowCounts()),
        differences=[row for verdict in verdicts for row in verdict.differences][:MOST_SHOWN],
        faults=list(dict.fromkeys(fault for verdict in verdicts for fault in verdict.faults)),
        notes=list(dict.fromkeys(note for verdict in verdicts for note in verdict.notes)),
        problem=next((verdict.problem for verdict in verdicts if verdict.problem is not None), None),
    )
