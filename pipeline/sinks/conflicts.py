"""Retries what failed because of another writer of the same Delta table."""

import re
import time
from collections.abc import Callable

from pipeline.spark.errors import SparkFailure

ATTEMPTS = 4
_CONFLICT = re.compile(r"DELTA_CONCURRENT_\w+|Concurrent\w+Exception")


def retried(action: Callable[[], object]) -> None:
    """Runs `action`, again after each conflict, and raises the failure of the last of ATTEMPTS. A conflict has written nothing."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            action()
        except SparkFailure as error:
            if conflict_in(error) is None or attempt == ATTEMPTS:
                raise
            time.sleep(attempt)
        else:
            return


def conflict_in(error: Exception) -> str | None:
    """The name of the conflict with another writer; None for another failure."""
    match = _CONFLICT.search(str(error))
    return None if match is None else match[0]
