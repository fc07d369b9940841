"""The rights that docs/security.md lists, as the broker takes them."""

import re
from pathlib import Path
from typing import NamedTuple

from contract.domains import TOPICS

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
OPERATIONS = ("READ", "WRITE", "DESCRIBE")


class Right(NamedTuple):
    """The right to do something with a topic."""

    operation: str
    name: str


def documented() -> dict[str, list[Right]]:
    """By program, such as `produce nest`, the rights of its row: columns READ, WRITE, DESCRIBE, and others by name."""
    rows = re.findall(r"^\| `([\w -]+)`[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|$", DOCUMENT.read_text(), re.MULTILINE)
    return {program: _rights(dict(zip(OPERATIONS, cells, strict=True)), others) for program, *cells, others in rows}


def _rights(cells: dict[str, str], others: str) -> list[Right]:
    found = [Right(operation, topic) for operation, cell in cells.items() for topic in _topics(cell)]
    for operation, cell in re.findall(r"([A-Z_]+): ([^;]+)", others):
        found += [Right(operation, topic) for topic in _topics(cell)]
    return found


def _topics(cell: str) -> list[str]:
    if "all topics" in cell:
        return [topic.name for topic in TOPICS]
    for term, topics in _defined().items():
        cell = re.sub(rf"\b{term}\b", topics, cell)
    return re.findall(r"[a-z][a-z.-]+", cell)


def _defined() -> dict[str, str]:
    """The topics by the term that the document defines for them above the table."""
    terms = dict(re.findall(r"^- \*(results[\w ]*)\*: (.+)$", DOCUMENT.read_text(), re.MULTILINE))
    terms["results"] = terms["results"].replace("the results with windows", terms["results with windows"])
    return terms
