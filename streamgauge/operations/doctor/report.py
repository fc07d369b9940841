"""Formats the findings as text or as JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

import orjson
from rich.text import Text

from streamgauge.operations.doctor.findings import Finding

_STYLES = {"ok": "green", "note": "blue", "warning": "yellow", "problem": "bold red"}


def as_text(findings: Sequence[Finding]) -> list[Text]:
    """One line per finding, and a summary."""
    width = max((len(finding.check) for finding in findings), default=0)
    return [*(_line(finding, width) for finding in findings), Text(summary(findings))]


def as_json(findings: Sequence[Finding]) -> str:
    """A JSON array of {check, level, message, advice}."""
    return orjson.dumps([asdict(finding) for finding in findings], option=orjson.OPT_INDENT_2).decode()


def summary(findings: Sequence[Finding]) -> str:
    """The number of problems and warnings."""
    counts = Counter(finding.level for finding in findings)
    return ", ".join(_counted(counts[level], level) for level in ("problem", "warning") if counts[level]) or "no problem, no warning"


def _counted(count: int, level: str) -> str:
    return f"{count} {level}{'s' if count > 1 else ''}"


def _line(finding: Finding, width: int) -> Text:
    advice = f"; {finding.advice}" if finding.advice else ""
    return Text.assemble((f"{finding.level:8}", _STYLES[finding.level]), f"{finding.check:{width}}  {finding.message}{advice}")
