"""What is behind a row of a result topic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from audit.audited import Row
from audit.checks.dead_letters import Origin
from audit.verdicts.comparison import WRONG, Found, Kind


@dataclass(frozen=True)
class Cause:
    """A record behind a row, of which one event is meant.

    time: Kafka's. batch: which has read it. counted: of a repeated one, the record that counts. watermark: of a late one, by which batch `batch`
    dropped it. note: what else there is to say.
    """

    topic: str
    partition: int
    offset: int
    time: datetime | None
    event_time: datetime
    batch: int
    counted: Origin | None = None
    watermark: datetime | None = None
    note: str = ""


@dataclass(frozen=True)
class Letter:
    """A dead letter of a record behind a row."""

    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class Some:
    """The first of a number of records."""

    count: int
    first: Sequence[Cause | Letter]


@dataclass(frozen=True)
class Explanation:
    """What is behind a row.

    kind: what it is (verdict.RowCounts). found, expected: None if there is, or should be, no such row. is_sum: whether the counted records alone
    give the expected row. letters: those of records that are listed. other_letters: how many other records of those that were read have one;
    any of them may have been meant for this row. records: how many were read.
    """

    query: str
    topic: str
    key: str
    kind: Kind
    found: Found | None
    expected: Row | None
    counted: Some
    repeated: Some
    late: Some
    letters: Some
    other_letters: int
    is_sum: bool
    records: int
    notes: Sequence[str] = field(default=())

    @property
    def is_wrong(self) -> bool:
        return self.kind in WRONG
