"""The findings of a check, and their formats: text and JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import orjson
from rich.text import Text

from infrastructure.text import without_credentials

Level = Literal["ok", "note", "warning", "problem"]
"""note: for information only. warning: works, but not as intended. problem: does not work."""
_STYLES = {"ok": "green", "note": "blue", "warning": "yellow", "problem": "bold red"}


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    check: what was checked. message: the finding, and what was expected if it differs. advice: what to do; empty if nothing.
    """

    check: str
    level: Level
    message: str
    advice: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", without_credentials(self.message))


def as_text(findings: Sequence[Finding]) -> list[Text]:
    """One line per finding, and a summary."""
    width = max((len(finding.check) for finding in findings), default=0)
    return [*(_line(finding, width) for finding in findings), Text(summary(findings))]


def as_json(findings: Sequence[Finding]) -> str:
    """A JSON array of {check, level, message, advice}."""
    return orjson.dumps(list(findings), option=orjson.OPT_INDENT_2).decode()


def summary(findings: Sequence[Finding]) -> str:
    """The number of problems and warnings."""
    counts = Counter(finding.level for finding in findings)
    counted = (f"{counts[level]} {level}{'s' if counts[level] > 1 else ''}" for level in ("problem", "warning") if counts[level])
    return ", ".join(counted) or "no problem, no warning"


def _line(finding: Finding, width: int) -> Text:
    advice = f"; {finding.advice}" if finding.advice else ""
    return Text.assemble((f"{finding.level:8}", _STYLES[finding.level]), f"{finding.check:{width}}  {finding.message}{advice}")
