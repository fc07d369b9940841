"""Limits how often a failing query is restarted, and sets the delay before each restart."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class RestartPolicy:
    """Allows a query to fail `limit` times within `within_seconds`. The delay doubles with each failure in that time."""

    limit: int
    within_seconds: float
    back_off_seconds: float = 1
    clock: Callable[[], float] = time.monotonic
    _failures: list[float] = field(default_factory=list)

    def seconds_until_restart(self) -> float | None:
        """Records a failure now. Returns the delay before the restart, or None when the query has failed too often."""
        now = self.clock()
        recent = [at for at in self._failures if now - at < self.within_seconds]
        self._failures = [*recent, now]
        return None if len(recent) >= self.limit else self.back_off_seconds * 2 ** len(recent)
