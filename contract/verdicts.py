"""The records of topic `verdicts` in full: what a page shows of a verdict, beside the word."""

from dataclasses import replace
from typing import Literal

from contract.rows import Count, Fields
from contract.topics import VERDICTS, Verdict


class RowsByKind(Fields):
    """How many rows are as the source says, and how many are wrong in each way. not_checkable, ahead: those are no errors."""

    equal: Count
    missing: Count = 0
    extra: Count = 0
    different: Count = 0
    not_checkable: Count = 0
    ahead: Count = 0


class WrongRow(Fields):
    """A wrong row, as text. where: its key. expected, found: what differs; "no such row" if there is to be, or is, none."""

    kind: Literal["missing", "extra", "different"]
    where: str
    expected: str
    found: str


class FullVerdict(Verdict):
    """What was found of a query. sink: what was compared: "topic NAME", and other sinks after " and ". faults: errors other than wrong rows.

    differences: the first wrong rows. problem: why it is not checked.
    """

    rows: RowsByKind  # type: ignore[assignment]  # has more fields
    sink: str = ""
    faults: list[str] = []  # noqa: RUF012 - a declaration, whose value is the default of a field
    differences: list[WrongRow] = []  # noqa: RUF012
    problem: str | None = None


VERDICTS_IN_FULL = replace(VERDICTS, row=FullVerdict)
"""The topic `verdicts`, with all that pages show of its rows."""
