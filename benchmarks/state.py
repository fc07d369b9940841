"""Measures what state and timers cost: `PYTHONPATH=tests python -m benchmarks.state [SECONDS]`, 600 by default, for each of two queries in turn.

`nest-camera-status`, a stateful processor in Python with timers, and `nest-camera-stats`, a native aggregation, each alone, at 1,000
documents/s of 100,000 cameras. Prints the first minutes after the warm-up and the last ones: batch time, state, timers, lag and memory.
"""

import statistics
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.daily import beside
from benchmarks.measuring import MIB, batches, family, fresh_platform, resident_bytes, say, say_machine
from infrastructure.settings import Settings

QUERIES = ("nest-camera-status", "nest-camera-stats")
DOCUMENTS_A_SECOND, CAMERAS = 1000, 100_000
EVENT_SECONDS = 3
"""Of event time a second: half an hour in ten minutes, so that the timers of ten minutes fire for most of the run."""
SECONDS, WARM_UP_SECONDS, LONGEST_WINDOW_SECONDS = 600, 240, 120


def main() -> None:
    """Prints two lines a query."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    say_machine()
    for query in QUERIES:
        with fresh_platform() as settings:
            measure(settings, query, seconds)


def measure(settings: Settings, query: str, seconds: int) -> None:
    """Runs the query for `seconds`, of which the first WARM_UP_SECONDS are not measured."""
    window = min(LONGEST_WINDOW_SECONDS, (seconds - WARM_UP_SECONDS) // 2)
    load = ("--rate", str(DOCUMENTS_A_SECOND), "--cameras", str(CAMERAS), "--speed-up", str(EVENT_SECONDS))
    with beside("produce", "nest", *load, settings=settings), beside("run", query, settings=settings) as pipeline:
        time.sleep(WARM_UP_SECONDS + window)
        first = datetime.now(UTC), memory(pipeline.pid)
        time.sleep(seconds - WARM_UP_SECONDS - window)
        last = datetime.now(UTC), memory(pipeline.pid)
    of_query = [batch for batch in batches(settings) if batch["query"] == query]
    for which, (end, used) in (("first", first), ("last", last)):
        start = end - timedelta(seconds=window)
        within = [batch for batch in of_query if start < datetime.fromisoformat(batch["time"]) <= end]
        if not within:
            sys.exit(f"{query} finished no batch in the {which} {window} s: nothing was measured")
        say(f"{query}, the {which} {window} s: {figures(within, window)}, {used}")


def figures(found: Sequence[dict[str, Any]], seconds: int) -> str:
    """The batches of a window. Lag and state are those after the last one."""
    times, end = [batch["batch_ms"] for batch in found], found[-1]
    timers = sum(operator["timers"] or 0 for operator in end["state_operators"])
    return (
        f"{sum(batch['input_rows'] for batch in found) / seconds:,.0f} documents/s, {len(times)} batches, "
        f"median {statistics.median(times):,.0f} ms, longest {max(times):,} ms, lag {sum(end['source_lag'].values()):,}, "
        f"{end['state_rows']:,} rows of state, {end['state_bytes'] / MIB:,.0f} MiB, {timers:,} timers"
    )


def memory(pid: int) -> str:
    """What Spark's JVM and its Python workers hold."""
    (java,) = (process for process in family(pid) if process.name() == "java")
    workers = java.children(recursive=True)
    return f"JVM {resident_bytes([java]) / MIB:,.0f} MiB, {len(workers)} Python workers {resident_bytes(workers) / MIB:,.0f} MiB"


if __name__ == "__main__":
    main()
