"""Measures what a query that fails again and again costs its neighbour: `PYTHONPATH=tests python -m benchmarks.neighbours`.

Batch times of `nest-camera-stats` at 200 documents/s, a minute each: beside `nest-archive` as it is, and beside one whose checkpoint is damaged, so
that it fails at each start and restarts at once, far more often than the supervisor would let it.
"""

import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import replace

from running import environment

from benchmarks.measuring import ME, batches, fresh_platform, say, say_machine
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointName

NEIGHBOUR, MEASURED = "nest-archive", "nest-camera-stats"
SECONDS, WARM_UP_SECONDS, DOCUMENTS_A_SECOND = 60, 60, 200


def main() -> None:
    """Prints a line a figure."""
    say_machine()
    for what in ("well", "failing"):
        with fresh_platform() as settings:
            measure(settings, what)


def measure(settings: Settings, what: str) -> None:
    """Runs both queries for WARM_UP_SECONDS and SECONDS."""
    if what == "failing":
        subprocess.run([*ME, "run", NEIGHBOUR, "--once"], env=environment(settings), check=True, stderr=subprocess.DEVNULL)
        checkpoint = CheckpointName(NEIGHBOUR, 1, "append").folder(settings)
        (checkpoint / "offsets").mkdir(exist_ok=True)
        (checkpoint / "offsets" / "0").write_text("rubbish")
        shutil.rmtree(checkpoint / "commits", ignore_errors=True)
    own = {**environment(settings), **replace(settings, restart_limit=1000, restart_seconds=0.5, trigger_seconds=1).environment()}
    with subprocess.Popen([*ME, "run", MEASURED, NEIGHBOUR], env=own, stderr=subprocess.PIPE, text=True) as pipeline:
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
