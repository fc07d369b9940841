"""Formats the verdicts, for people and for programs."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from audit.verdicts.comparison import Difference, Unreadable, is_equal
from audit.verdicts.verdict import Beside, RowCounts, Verdict

MAX_ROW_CHARACTERS = 200
_NO_ERRORS = {
    "not_checkable": "not checkable, as the source has lost records that they are made of",
    "ahead": "ahead of the last checkpoint, and within what the whole topic gives; for an exact comparison, stop the pipeline, `streamgauge run --once`, and verify again",
    "unknown_lateness": "different, and made of records of which it is not known whether they came too late",
    "expired": "expired and deleted",
}
"""What is said of rows that are not errors, by kind: `3 rows: ...`."""
_MOST_WHOLE = 2**53
"""Doubles keep whole numbers up to this one."""
_STYLES = {"right": "green", "wrong": "bold red", "not checked": "yellow"}


def as_json(verdicts: Sequence[Verdict]) -> str:
    """A JSON array with one object per query."""
    found = [{**asdict(verdict), "verdict": verdict.verdict, "rows": verdict.rows.by_kind} for verdict in verdicts]
    return json_of(found)


def show(verdicts: Sequence[Verdict], console: Console) -> None:
    """Prints a table with one line per query, then details for each, then the overall verdict."""
    numbers = [Column(name, justify="right", no_wrap=True) for name in ("batch", "records", "equal rows", "wrong", "too late")]
    ends = Column("query", no_wrap=True), Column("verdict", no_wrap=True)
    table = Table(ends[0], *numbers, ends[1], box=None, pad_edge=False, header_style="bold")
    for verdict in verdicts:
        table.add_row(verdict.query, *_cells(verdict), Text(verdict.verdict, _STYLES[verdict.verdict]))
    console.print(table)
    for verdict in verdicts:
        if lines := _lines(verdict):
            console.print(f"\n{verdict.query}, {verdict.sink}", style="bold")
        for line in lines:
            console.print(f"  {line}")
    console.print(f"\n{_summary(verdicts)}")


def _cells(verdict: Verdict) -> list[str]:
    if verdict.verdict not in {"right", "wrong"}:
        return [""] * 5
    late = "" if verdict.lateness is None else f"{verdict.lateness.late_rows:,}"
    batch = "none" if verdict.has_no_batch else f"{verdict.batch}"
    return [batch, f"{verdict.records:,}", f"{verdict.rows.equal:,}", f"{verdict.rows.wrong + len(verdict.faults):,}", late]


def _lines(verdict: Verdict) -> list[str]:
    rows = verdict.rows
    lines = [] if verdict.problem is None else [f"not checked: {verdict.problem}"]
    if verdict.has_no_batch:
        lines.append("it has not finished a batch yet, so no record is recounted: verify again later")
    if (late := verdict.lateness) and late.late_rows:
        lines.append(
            f"{late.late_rows:,} of {late.rows:,} rows came too late: {late.late_events:,} of {late.events:,} events count nowhere because of it"
        )
    counted = ((getattr(rows, kind), what) for kind, what in _NO_ERRORS.items())
    lines += [f"{count:,} {'row' if count == 1 else 'rows'}: {what}" for count, what in counted if count]
    lines += verdict.notes
    lines += [f"WRONG: {fault}" for fault in verdict.faults]
    if rows.wrong:
        lines.append(
            f"WRONG: {rows.wrong:,} of {rows.by_kind['compared']:,} rows: {rows.missing:,} missing, {rows.extra:,} extra, {rows.different:,} different"
        )
    lines += _differences(verdict.differences, rows, "the source says", "the sink holds")
    return lines if verdict.beside is None else [*lines, *_beside(verdict.beside)]


def _differences(differences: Sequence[Difference], rows: RowCounts, expected_in: str, found_in: str) -> list[str]:
    lines = []
    for difference in differences:
        lines.append(f"{difference.kind} {difference.where}")
        expected, found = what_differs(difference)
        lines.append(f"    {expected_in:15}  {expected}")
        lines.append(f"    {found_in:15}  {found}")
    if rows.wrong > len(differences):
        lines.append(f"... and {rows.wrong - len(differences):,} more")
    return lines


def _beside(beside: Beside) -> list[str]:
    rows, until = beside.rows, f", in windows until {beside.until}" if beside.until else ""
    counts = f"{rows.equal:,} rows equal, {rows.different:,} differ, {rows.extra:,} only in this version, {rows.missing:,} only in the current one"
    return [
        f"beside {beside.sink}{until}: {counts}",
        *_differences(beside.differences, rows, "current", "this version"),
    ]


def _summary(verdicts: Sequence[Verdict]) -> str:
    by_verdict = {word: [verdict.query for verdict in verdicts if verdict.verdict == word] for word in _STYLES}
    if wrong := by_verdict["wrong"]:
        return f"WRONG: {', '.join(wrong)}: the sink does not hold what the source says."
    if unchecked := by_verdict["not checked"]:
        return f"Not proven: {', '.join(unchecked)} could not be checked; what could be is right."
    ahead, unfinished = sum(verdict.rows.ahead for verdict in verdicts), sum(verdict.has_no_batch for verdict in verdicts)
    right = len(verdicts) - unfinished
    limits = f", up to their last checkpoints; {ahead:,} {'row is' if ahead == 1 else 'rows are'} ahead of them" if ahead else ""
    unfinished_ones = f"; {unfinished} {'query has' if unfinished == 1 else 'queries have'} not finished a batch yet" if unfinished else ""
    return f"Right: {right} of {len(verdicts)} queries hold exactly what their source says{limits}{unfinished_ones}."


def what_differs(difference: Difference) -> tuple[str, str]:
    """The columns of the expected and of the found row that differ, or else both rows as a whole, each on one line."""
    expected, found = difference.expected, difference.found
    if not (isinstance(expected, dict) and isinstance(found, dict)):
        return row_text(expected), row_text(found)
    names = [
        name
        for name in (*expected, *(found.keys() - expected.keys()))
        if name not in found or not is_equal(found[name], expected.get(name))
    ]
    return row_text({name: expected.get(name) for name in names}), row_text({name: found.get(name) for name in names})


def row_text(row: Any) -> str:  # noqa: ANN401 - a row, or nothing
    """A row, or a part of one, on one line."""
    if row is None:
        return "no such row"
    if isinstance(row, dict):  # the source's numbers are decimals or doubles, those of a topic may be whole
        row = {name: plain(value) if isinstance(value, float) else value for name, value in row.items()}
    return shortened(f"not readable: {row.reason}" if isinstance(row, Unreadable) else json_of(row))


def shortened(text: str) -> str:
    """The text, or as much of it as fits on a line."""
    return text if len(text) <= MAX_ROW_CHARACTERS else f"{text[:MAX_ROW_CHARACTERS]} ..."


def json_of(value: object, option: int = 0) -> str:
    """The value as JSON. option: of orjson."""
    try:
        return orjson.dumps(value, default=plain, option=option).decode()
    except TypeError:  # another program's integer beyond 64 bits, or text with half a surrogate pair
        return json.dumps(value, default=plain, separators=(",", ":"))


def plain(value: object) -> object:
    """What JSON has for a value that is no JSON."""
    if isinstance(value, datetime):
        return f"{value.isoformat().removesuffix('+00:00')}Z"
    if isinstance(value, float | Decimal):
        return int(value) if math.isfinite(value) and -_MOST_WHOLE <= value <= _MOST_WHOLE and value == int(value) else float(value)
    return str(value)
