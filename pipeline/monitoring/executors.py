"""Notices which executors of a cluster have ended, and why. Spark repeats their tasks elsewhere, so no query fails."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from pipeline.monitoring.watch import Level

MEANINGS = {
    52: "Java was out of memory; raise STREAMGAUGE_EXECUTOR_MEMORY",
    56: "the driver received no heartbeats",
    137: "killed by signal 9, most likely by the kernel because memory ran out",
    143: "stopped by signal 15",
}
"""The meanings of an executor's exit codes. Codes above 128 are 128 plus the number of a signal; the others are those of Spark's ExecutorExitCode."""
_EXIT_CODE = re.compile(r"exited with code (\d+)")


class Executor(NamedTuple):
    """An executor. ended: why it has ended, in Spark's words; None while it runs."""

    id: str
    host: str
    ended: str | None = None


class ExecutorWatch:
    """Warns of each executor that ends. The warning is resolved when as many run as before. Pure."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._most = 0
        self._is_one_missing = False

    def look(self, executors: Sequence[Executor]) -> list[tuple[Level, str]]:
        """Level and text of the alerts that are due. executors: those that run, and those that have ended."""
        running = sum(executor.ended is None for executor in executors)
        new = [executor for executor in executors if executor.ended is not None and executor.id not in self._reported]
        self._reported |= {executor.id for executor in new}
        self._most, self._is_one_missing = max(self._most, running), self._is_one_missing or bool(new)
        alerts: list[tuple[Level, str]] = [
            (
                "warning",
                f"executor {executor.id} on {executor.host} has ended: {_explained(executor.ended or '')}; {running} of {self._most} run",
            )
            for executor in new
        ]
        if self._is_one_missing and running == self._most > 0:
            self._is_one_missing = False
            alerts.append(("resolved", f"{running} of {self._most} executors run"))
        return alerts


def executors_of(spark: SparkSession) -> list[Executor]:
    """The executors of the session's application: all that run, and the last hundred that have ended. None with a local master."""
    listed = spark.sparkContext._jsc.sc().statusStore().executorList(False)  # noqa: FBT003
    return [_executor(summary) for summary in (listed.apply(number) for number in range(listed.size())) if summary.id() != "driver"]


def _executor(summary: JavaObject) -> Executor:
    reason = summary.removeReason()
    ended = None if summary.isActive() else reason.get() if reason.isDefined() else ""
    return Executor(summary.id(), summary.hostPort().rpartition(":")[0], ended)


def _explained(reason: str) -> str:
    """Spark's reason in one line, with the meaning of the exit code, if it has one."""
    line = " ".join(reason.split()) or "Spark gives no reason"
    code = _EXIT_CODE.search(line)
    return f"{line} ({MEANINGS[int(code[1])]})" if code and int(code[1]) in MEANINGS else line
