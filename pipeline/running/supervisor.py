"""How often a query that fails is restarted, and how long it waits before."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class RestartPolicy:
    """Lets a query fail `limit` times within `within_seconds`; waits twice as long before each further restart."""

    limit: int
    within_seconds: float
    back_off_seconds: float = 1
    clock: Callable[[], float] = time.monotonic
    _failures: list[float] = field(default_factory=list)

    def seconds_until_restart(self) -> float | None:
        """Notes that the query has failed now. How long to wait before it is restarted; None when it has failed too often."""
        now = self.clock()
        recent = [at for at in self._failures if now - at < self.within_seconds]
        self._failures = [*recent, now]
        return None if len(recent) >= self.limit else self.back_off_seconds * 2 ** len(recent)
