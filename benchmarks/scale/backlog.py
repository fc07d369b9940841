"""Runs one query alone over a backlog, in a process that may have cores of its own: `python -m benchmarks.scale.backlog QUERY BATCHES`.

After so many batches it prints what the second half of them took, as a `Sample` in JSON, and ends.
"""

import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.measuring import cpu_seconds
from infrastructure.settings import Settings
from pipeline.catalog import queries
from pipeline.monitoring.progress import JsonListener
from pipeline.running.runner import Runner
from pipeline.spark.session import spark_session


@dataclass(frozen=True)
class Sample:
    """Batches of a query. records and wall_seconds: the median of a batch. cpu_seconds: the mean, of the process and all that it starts.

    state_bytes: memory of a row of its state.
    """

    records: float
    wall_seconds: float
    cpu_seconds: float
    state_bytes: float


class Batches(JsonListener):
    """Prints the Sample when `wanted` batches have ended, and ends the process."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.found: list[dict[str, Any]] = []
        self.cpu: list[float] = []

    def onQueryStarted(self, event: object) -> None:  # noqa: N802 - Spark's name
        """Nothing to measure yet."""

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802 - Spark's name
        """A query that fails before its last batch ends the Runner."""

    def onQueryProgress(self, event: str) -> None:  # type: ignore[override] # noqa: N802 - Spark's name
        """event: as JSON."""
        progress = json.loads(event)
        if not progress["numInputRows"]:
            return
        self.found.append(progress)
        self.cpu.append(cpu_seconds(os.getpid()))
        if len(self.found) == self.wanted:
            sys.stdout.write(json.dumps(asdict(self.sample())) + "\n")
            sys.stdout.flush()
            os._exit(0)

    def sample(self) -> Sample:
        """What the second half of the batches took."""
        half = self.wanted // 2
        measured = self.found[half:]
        operators = measured[-1]["stateOperators"]
        rows = sum(operator["numRowsTotal"] for operator in operators)
        return Sample(
            records=statistics.median(progress["numInputRows"] for progress in measured),
            wall_seconds=statistics.median(progress["batchDuration"] for progress in measured) / 1000,
            cpu_seconds=(self.cpu[-1] - self.cpu[half - 1]) / len(measured),
            state_bytes=sum(operator["memoryUsedBytes"] for operator in operators) / rows if rows else 0,
        )


def main() -> None:
    """Ends in `Batches`."""
    name, wanted = sys.argv[1], int(sys.argv[2])
    settings = Settings.from_environment()
    spark = spark_session(settings)
    spark.streams.addListener(Batches(wanted))
    Runner(spark, settings).run(replace(query, trigger_seconds=0) for query in queries(settings) if query.name == name)


if __name__ == "__main__":
    main()
