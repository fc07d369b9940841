"""Measures what a query that fails again and again costs its neighbour: `PYTHONPATH=tests python -m benchmarks.neighbours`.

Batch times of `nest-camera-stats` in micro-batches, at 200 documents/s, a minute each: beside `nest-archive` as it is, and beside one whose folder is a file, so that
each of its runs fails. It restarts every second, far more often than the supervisor would let it.
"""

import statistics
import subprocess
import sys
import time
from dataclasses import replace

from running import environment

from benchmarks.measuring import ME, batches, fresh_platform, say, say_machine
from infrastructure.settings import Settings

NEIGHBOUR, MEASURED = "nest-archive", "nest-camera-stats"
SECONDS, WARM_UP_SECONDS, DOCUMENTS_A_SECOND = 60, 60, 200
OFTEN = "from pipeline.running import query_life; query_life.MAX_DELAY_SECONDS = 1; from streamgauge.cli import main; main()"


def main() -> None:
    """Prints a line a figure."""
    say_machine()
    for what in ("well", "failing"):
        with fresh_platform() as settings:
            measure(settings, what)


def measure(settings: Settings, what: str) -> None:
    """Runs both queries for WARM_UP_SECONDS and SECONDS."""
    if what == "failing":
        (settings.lake / "nest").mkdir(parents=True)
        (settings.lake / "nest" / "cameras").touch()
    own = {**environment(settings), **replace(settings, restart_limit=1000, trigger_seconds=1, real_time="off").environment()}
    with subprocess.Popen(
        [sys.executable, "-c", OFTEN, "run", MEASURED, NEIGHBOUR], env=own, stderr=subprocess.PIPE, text=True
    ) as pipeline:
        count = str(DOCUMENTS_A_SECOND * (WARM_UP_SECONDS + SECONDS))
        produce = [*ME, "produce", "nest", "--rate", str(DOCUMENTS_A_SECOND), "--limit", count, "--speed-up", "60"]
        subprocess.run(produce, env=environment(settings), check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(2)
        pipeline.terminate()
        restarts = pipeline.communicate()[1].count(f"{NEIGHBOUR} restarts")
    if (restarts > 0) != (what == "failing"):
        sys.exit(f"{NEIGHBOUR}, {what}, restarted {restarts} times: nothing was measured")
    measured = sorted([batch["batch_ms"] for batch in batches(settings) if batch["query"] == MEASURED][-SECONDS:])
    say(
        f"beside a neighbour that is {what} ({restarts} restarts): {len(measured)} batches, median {statistics.median(measured):,.0f} ms, "
        f"p95 {measured[int(len(measured) * 0.95)]:,.0f} ms"
    )


if __name__ == "__main__":
    main()
