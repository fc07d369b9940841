"""The results in docs/crash-points.md: which points were tried, and what was found."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from crash_points.enumeration import Tried

PAGE = Path(__file__).parents[2] / "docs" / "crash-points.md"


def what_of(operation: str) -> str:
    """What an operation is on: a request, or a file by the name that it gets in the end."""
    if operation.startswith("send"):
        return f"request `{operation.split()[1]}`"
    folder, _, name = operation.rpartition(" ")[2].rpartition("/")
    name = re.sub(r"^\.*(.+?)(\.\*)?(\.tmp|\.partial)?(\.crc)?$", r"\1", name)
    of_checkpoint = r"^checkpoints/[^/.]+(/|(?=\.))"
    return f"`{re.sub(of_checkpoint, '', f'{folder}/{name}'.lstrip('/'))}`"


def told(tried: Sequence[Tried], points: int) -> str:
    """How many points were tried, and for each thing that a kill can leave, before how many operations on which files. points: of a run."""
    reached = [one for one in tried if one.found is not None]
    files: dict[str, Counter[str]] = defaultdict(Counter)
    for one in reached:
        files[str(one.found)][what_of(one.point.operation)] += 1
    how_many = f"All {points}" if len(reached) == points else f"Only a sample, {len(reached)} of {points}"
    wrong = [f"* **wrong** before {one.point.operation} ({one.point.occurrence}): {'; '.join(one.wrong)}" for one in reached if one.wrong]
    left = [f"* {kind}: {', '.join(f'{what} {count}' for what, count in counts.items())}" for kind, counts in files.items()]
    return "\n".join([f"{how_many} points were tried; {len(reached) - len(wrong)} were right.", "", *wrong, *left])


def note(case: str, tried: Sequence[Tried], points: int) -> None:
    """Puts what was found into the section of the case. points: how many a run has."""
    begin, text = f"<!-- {case} -->\n\n", told(tried, points)
    PAGE.write_text(re.sub(f"(?s)(?<={re.escape(begin)}).*?(?=\n\n### |\n$)", lambda _: text, PAGE.read_text(), count=1))
