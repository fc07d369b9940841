"""The tables of docs/crash-points.md: which points were tried, and what was found."""

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


def table(tried: Sequence[Tried]) -> str:
    """A row for each file, in the order of the first operation on it."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    right: Counter[str] = Counter()
    for one in tried:
        if one.found is not None:
            found[what_of(one.point.operation)][one.found] += 1
            right[what_of(one.point.operation)] += not one.wrong
    rows = [
        f"| {what} | {'; '.join(f'{count}: {left}' for left, count in kinds.items())} | {right[what]} of {kinds.total()} |"
        for what, kinds in found.items()
    ]
    return "\n".join(["| before an operation on | the kill left | right |", "|---|---|---|", *rows])


def note(case: str, tried: Sequence[Tried], points: int) -> None:
    """Puts the table of a case into the page. points: how many a run has."""
    count = sum(one.found is not None for one in tried)
    told = f"{'All' if count == points else f'Only a sample, {count} of'} the {points} points of a run were tried.\n\n{table(tried)}"
    begin, end = f"<!-- {case} -->\n\n", f"\n\n<!-- end of {case} -->"
    PAGE.write_text(re.sub(f"(?s){re.escape(begin)}.*{re.escape(end)}", lambda _: begin + told + end, PAGE.read_text()))
