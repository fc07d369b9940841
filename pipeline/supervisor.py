"""How often a query that fails is started again, and how long it waits before."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class RestartPolicy:
    """Lets each query fail `limit` times within `within_seconds`; waits longer before each further start."""

    limit: int
    within_seconds: float
    back_off_seconds: float = 1
    clock: Callable[[], float] = time.monotonic
    _failures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def seconds_until_restart(self, query: str) -> float | None:
        """Notes that `query` has failed now. How long to wait before it is started again; None when it has failed too often."""
        now = self.clock()
        recent = [at for at in self._failures[query] if now - at < self.within_seconds]
        self._failures[query] = [*recent, now]
        return None if len(recent) >= self.limit else self.back_off_seconds * 2 ** len(recent)
