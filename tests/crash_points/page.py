"""The results in docs/crash-points.md: which points were tried, and what was found."""

import re
from collections.abc import Sequence
from pathlib import Path

from crash_points.enumeration import Tried
from crash_points.watched import Point

PAGE = Path(__file__).parents[2] / "docs" / "crash-points.md"


def told(tried: Sequence[Tried], points: int) -> str:
    """Three cells of a row: points of a run, points tried, how many were right; and what was wrong before which operation, or in which write."""
    reached = [one for one in tried if one.found is not None]
    wrong = [
        f" {'in' if one.point.is_torn else 'before'} {one.point.operation} ({one.point.occurrence}): {'; '.join(one.wrong)}"
        for one in reached
        if one.wrong
    ]
    return f"{points} | {len(reached)} | {len(reached) - len(wrong)}{'; **wrong**' if wrong else ''}{';'.join(wrong)} |"


def note(case: str, tried: Sequence[Tried], points: Sequence[Point]) -> None:
    """Puts what was found into the row of the case: three cells of points before an operation, and three of torn writes. points: of a run."""
    page = PAGE.read_text()
    for cells_before, is_torn in ((0, False), (3, True)):
        own, number = [one for one in tried if one.point.is_torn == is_torn], sum(point.is_torn == is_torn for point in points)
        if own or (is_torn and number == 0):
            text = told(own, number)
            cells = rf"(<!-- {case} --> \|(?:[^|\n]*\|){{{cells_before}}})(?:[^|\n]*\|){{3}}"
            page = re.sub(cells, lambda row, text=text: f"{row[1]} {text}", page, count=1)
    PAGE.write_text(page)
