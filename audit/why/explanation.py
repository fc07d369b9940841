"""The explanation of a row of a result topic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from audit.audited import Row
from audit.reading.records import Origin
from audit.verdicts.comparison import WRONG, Found, Kind


@dataclass(frozen=True)
class Cause:
    """A record behind a row, with one of its events.

    time: Kafka's timestamp. batch: the one that has read it. counted: if it repeats another record, the one that counts. watermark: if it is late,
    the one by which the batch dropped it. note: further remarks.
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
class Sample:
    """The first of a number of records."""

    count: int
    first: Sequence[Cause | Letter]


@dataclass(frozen=True)
class Explanation:
    """The records behind a row.

    kind: of the row (verdict.RowCounts). found, expected: None if there is, or should be, no such row. is_sum: whether the counted records alone
    give the expected row. letters: dead letters of the records behind the row. other_letters: the number of those of other records that were
    read; any of them may have been meant for this row. records: the number that was read.
    """

    query: str
    topic: str
    key: str
    kind: Kind
    found: Found | None
    expected: Row | None
    counted: Sample
    repeated: Sample
    late: Sample
    letters: Sample
    other_letters: int
    is_sum: bool
    records: int
    notes: Sequence[str] = field(default=())

    @property
    def is_wrong(self) -> bool:
        return self.kind in WRONG
