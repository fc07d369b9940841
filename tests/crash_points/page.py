"""The results in docs/crash-points.md: which points were tried, and what was found."""

import re
from collections.abc import Sequence
from pathlib import Path

from crash_points.enumeration import Tried
from crash_points.watched import End, Point

PAGE = Path(__file__).parents[2] / "docs" / "crash-points.md"


def told(tried: Sequence[Tried], points: int) -> str:
    """Three cells of a row: points of a run, points tried, how many were right (of them after a reset); and what was wrong before which operation, or in which write."""
    reached = [one for one in tried if one.found is not None]
    wrong = [
        f" {'in' if one.point.end is End.TORN else 'before'} {one.point.operation} ({one.point.occurrence}): {'; '.join(one.wrong)}"
        for one in reached
        if one.wrong
    ]
    reset = sum(one.after_reset and not one.wrong for one in reached)
    right = f"{len(reached) - len(wrong)}{f' ({reset})' if reset else ''}"
    return f"{points} | {len(reached)} | {right}{'; **wrong**' if wrong else ''}{';'.join(wrong)} |"


def note(case: str, tried: Sequence[Tried], points: Sequence[Point]) -> None:
    """Puts what was found into the row of the case: three cells for each end. points: of a run."""
    page = PAGE.read_text()
    for cells_before, end in zip((0, 3, 6), End, strict=True):
        own, number = [one for one in tried if one.point.end is end], sum(point.end is end for point in points)
        if own or (end is End.TORN and number == 0 and any(point.end is End.KILL for point in points)):
            text = told(own, number)
            cells = rf"(<!-- {case} --> \|(?:[^|\n]*\|){{{cells_before}}})(?:[^|\n]*\|){{3}}"
            page = re.sub(cells, lambda row, text=text: f"{row[1]} {text}", page, count=1)
    PAGE.write_text(page)
