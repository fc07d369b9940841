"""The results in docs/crash-points.md: which points were tried, and what was found."""

import re
from collections.abc import Sequence
from pathlib import Path

from crash_points.enumeration import Tried

PAGE = Path(__file__).parents[2] / "docs" / "crash-points.md"


def told(tried: Sequence[Tried], points: int) -> str:
    """The cells of a row: points of a run, points tried, how many were right; and what was wrong before which operation."""
    reached = [one for one in tried if one.found is not None]
    wrong = [f" before {one.point.operation} ({one.point.occurrence}): {'; '.join(one.wrong)}" for one in reached if one.wrong]
    return f"{points} | {len(reached)} | {len(reached) - len(wrong)}{'; **wrong**' if wrong else ''}{';'.join(wrong)} |"


def note(case: str, tried: Sequence[Tried], points: int) -> None:
    """Puts what was found into the row of the case. points: how many a run has."""
    mark, text = f"<!-- {case} --> | ", told(tried, points)
    PAGE.write_text(re.sub(f"(?<={re.escape(mark)}).*", lambda _: text, PAGE.read_text(), count=1))
