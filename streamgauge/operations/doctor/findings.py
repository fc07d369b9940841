"""What a check finds."""

from dataclasses import dataclass
from typing import Literal

from contract.text import without_credentials

Level = Literal["ok", "note", "warning", "problem"]
"""note: worth knowing, nothing to mend. warning: works, but not as it should. problem: does not work."""


@dataclass(frozen=True)
class Finding:
    """One line. check: what was looked at. message: what was found, and expected if that is not it. advice: what to do; empty if nothing."""

    check: str
    level: Level
    message: str
    advice: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", without_credentials(self.message))
