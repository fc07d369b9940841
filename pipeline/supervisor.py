"""Whether a query that failed is started again from its checkpoint, and what a person is told when it is not."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from streamgauge.errors import StreamgaugeError
from streamgauge.settings import Settings

DATA_LOSS = ("failOnDataLoss", "KAFKA_DATA_LOSS", "data may have been lost")

# Spark 4.1's Kafka source fails so after it has run, and committed, a batch that an earlier run had planned and not finished: it
# reports how far it is behind offsets that it has not asked for yet (KafkaMicroBatchStream.metrics). Started again, it goes on.
AFTER_A_BATCH_RUN_AGAIN = (
    'Cannot invoke "scala.collection.IterableOps.map(scala.Function1)" because the return value of "scala.Option.get()" is null'
)


class Restart(NamedTuple):
    """When a query is started again, and a line that says why it failed."""

    after_seconds: float
    why: str


@dataclass
class RestartPolicy:
    """Lets each query fail `limit` times within `within_seconds`; waits longer before each further start."""

    limit: int = 3
    within_seconds: float = 300
    back_off_seconds: float = 1
    clock: Callable[[], float] = time.monotonic
    _failures: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def restart(self, query: str, failure: str, settings: Settings) -> Restart:
        """When to start `query` again after `failure`, the text of Spark's exception.

        Raises StreamgaugeError when starting it again is of no use, or was tried often enough.
        """
        if any(sign in failure for sign in DATA_LOSS):
            raise StreamgaugeError(data_loss(query, settings))
        if AFTER_A_BATCH_RUN_AGAIN in failure:
            return Restart(0, "it has finished the batch that an earlier run left half done")
        now = self.clock()
        recent = [at for at in self._failures[query] if now - at < self.within_seconds]
        self._failures[query] = [*recent, now]
        first = next((line for line in failure.splitlines() if line.strip()), "no reason given")
        if len(recent) >= self.limit:
            msg = f"query {query} failed {len(recent) + 1} times within {self.within_seconds:.0f} s and is given up: {first} (the whole of it is in {settings.logs / 'spark.log'})"
            raise StreamgaugeError(msg)
        return Restart(self.back_off_seconds * 2 ** len(recent), first)


def data_loss(query: str, settings: Settings) -> str:
    """What to say when records are gone that a query had not read."""
    return (
        f"query {query} stopped: records that it had not read yet are gone from Kafka (retention has cut them, or the topic was deleted and created anew). "
        f"Two ways out: go on with what is left and accept the gap (STREAMGAUGE_FAIL_ON_DATA_LOSS=false), "
        f"or count anew from the earliest record that is there (delete {settings.checkpoints / query}-v*)"
    )
