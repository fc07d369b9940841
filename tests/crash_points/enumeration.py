"""Kills a case at each of its points, runs it again, and asks what is wrong."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from running import environment, few_rows
from topic_reset import empty_topics

from crash_points.cases import CASES
from crash_points.images import Images
from crash_points.watched import End, Point, Watched, ends_of, points_of
from infrastructure.lake_environment import PYTHON as PYTHON_WITH_DELTA
from infrastructure.settings import Settings

TESTS = str(Path(__file__).parents[1])
NOT_KEPT = ("kafka", "logs", "tmp")
"""Folders of a home whose files no restart reads."""
SOON_OLD = {
    # What Spark deletes or compacts after a hundred batches, it does in each run, and a batch in real time may be short.
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.fileSink.log.compactInterval": "3",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
    "spark.sql.streaming.realTimeMode.minBatchDuration": "1s",
}
DONE = "done"
"""What the worker answers; or, in a line, why the work failed."""
RUNS = 10
"""How many runs may pass until one comes to a point. DuckDB, for example, truncates its file in some of them only."""


@dataclass(frozen=True)
class Tried:
    """A point; what its end left, or None if the program did not come to the point; what was wrong after it had run again.

    after_reset: whether the program refused to run with what the power failure had left, and was reset, as it said.
    """

    point: Point
    found: str | None
    wrong: list[str]
    after_reset: bool = False


class WorkFailedError(Exception):
    """The work has ended with an error."""


class Enumeration:
    """The points of a case, in a home of its own. points: of a run, and then those in torn writes; known once the first was tried."""

    def __init__(self, name: str, platform: Settings, home: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        empty_topics(platform.kafka)
        self.name, self.case = name, CASES[name]
        variables = {variable: text.replace("HOME", str(home)) for variable, text in self.case.variables.items()}
        self._environment = environment(few_rows(replace(platform, home=home), **SOON_OLD), **variables, PYTHONPATH=TESTS)
        self.settings = Settings.from_environment(self._environment)
        self.points: list[Point] = []
        self._program: Watched | None = None
        self._rounds = 0

    def tried(self, most: int | None = None, only: End | None = None, *, by_kill: bool = False) -> Iterator[Tried]:
        """Tries each point of a run that is not the first with each end, or so many of them, or those with one end.

        by_kill: with a new run and a real kill for each point, as for a case without a session. Otherwise, one run is recorded, and what a kill
        would leave at the point is restored.
        """
        try:
            for _ in range(2):
                self._fed_and_done()
            try_all = self._killed if by_kill or self.case.spark is None else self._restored
            yield from try_all(most, only)
        finally:
            if self._program:
                self._program.end()

    def _killed(self, most: int | None, only: End | None) -> Iterator[Tried]:
        for point in self._chosen(self._fed_and_done(), most, only):
            for _ in range(RUNS):
                self._fed_and_done(point)
                if self._program is None:
                    break
            found = self.case.found(self.settings) if self._program is None else None
            yield Tried(point, found, *self._after_the_next_run(point))

    def _restored(self, most: int | None, only: End | None) -> Iterator[Tried]:
        """What a kill leaves is often the same at several points, and is then tried once."""
        with Images(self.settings, NOT_KEPT, [self.case.source]) as images:
            operations = self._fed_and_done(before_each=images.take)
            number_of = {point: number for number, point in enumerate(points_of(operations))}
            known: dict[str, tuple[str, list[str], bool]] = {}
            for point in self._chosen(operations, most, only):
                number = number_of[point._replace(end=End.KILL)]
                content = images.content(number, point.end)
                if content not in known:
                    images.restore(number, point.end)
                    known[content] = self.case.found(self.settings), *self._after_the_next_run(point)
                yield Tried(point, *known[content])

    def _chosen(self, operations: Sequence[str], most: int | None, only: End | None) -> Sequence[Point]:
        self.points = [point for point in ends_of(points_of(operations)) if only in {None, point.end}]
        return self.points[:: 1 if most is None else max(1, len(self.points) // most)]

    def _after_the_next_run(self, point: Point, *, after_reset: bool = False) -> tuple[list[str], bool]:
        """What is wrong then, and whether it took a reset."""
        try:
            self._done()
        except WorkFailedError as failure:
            if after_reset or point.end is not End.POWER or self.case.reset is None or "`streamgauge reset" not in str(failure):
                return [f"the next run failed: {failure}"], after_reset
            self.case.reset(self.settings, str(failure))
            return self._after_the_next_run(point, after_reset=True)
        return self.case.wrong(self.settings), after_reset

    def _fed_and_done(self, point: Point | None = None, **armed: Any) -> list[str]:
        self.case.feed(self.settings, self._rounds)
        self._rounds += 1
        return self._done(point, **armed)

    def _done(self, point: Point | None = None, **armed: Any) -> list[str]:
        """Does the work, and returns its operations. It is killed at the point, if it comes to it. Raises WorkFailedError when it fails."""
        if self._program is None:
            python = PYTHON_WITH_DELTA if self.case.spark == "with Delta" else sys.executable
            command = [str(python), "-m", "crash_points.worker", self.name]
            self._program = Watched(command, self._environment, self.settings.home, self.settings.kafka_port, but=NOT_KEPT)
        program = self._program
        program.arm(point, **armed)
        program.popen.stdin.write("\n")
        program.popen.stdin.flush()
        answer = program.popen.stdout.readline().strip()
        operations = program.operations
        if answer == DONE:
            program.arm(None)
            return operations
        program.end()
        self._program = None
        if program.killed_at:
            return operations
        raise WorkFailedError(answer or f"the work of {self.name} has ended without an answer")
