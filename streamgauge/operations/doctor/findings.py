"""The findings of a check."""

from dataclasses import dataclass
from typing import Literal

from contract.text import without_credentials

Level = Literal["ok", "note", "warning", "problem"]
"""note: for information only. warning: works, but not as intended. problem: does not work."""


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
