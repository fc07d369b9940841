"""Kills a case at each of its points, runs it again, and asks what is wrong."""

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from running import environment, few_rows
from topic_reset import empty_topics

from contract.lake_environment import PYTHON as PYTHON_WITH_DELTA
from contract.settings import Settings
from crash_points.cases import CASES
from crash_points.watched import Point, Watched, points_of

TESTS = str(Path(__file__).parents[1])
NOT_KEPT = ("kafka", "logs", "tmp")
"""Folders of a home whose files no restart reads."""
SOON_OLD = {
    # What Spark deletes or compacts after a hundred batches, it does in each run.
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.fileSink.log.compactInterval": "3",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
}


@dataclass(frozen=True)
class Tried:
    """A point; what the kill left, or None if the program did not come to the point; what was wrong after it had run again."""

    point: Point
    found: str | None
    wrong: list[str]


class Enumeration:
    """The points of a case, in a home of its own. points: of a run; known once the first was tried."""

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

    def tried(self, most: int | None = None) -> Iterator[Tried]:
        """Tries each point of a run that is not the first, or so many of them. Ends with the first that is wrong."""
        try:
            for _ in range(3):
                operations = self._fed_and_done()
            self.points = points_of(operations)
            for point in self.points[:: 1 if most is None else max(1, len(self.points) // most)]:
                self._fed_and_done(point)
                found = self.case.found(self.settings) if self._program is None else None
                self._done()
                wrong = self.case.wrong(self.settings)
                yield Tried(point, found, wrong)
                if wrong:
                    break
        finally:
            if self._program:
                self._program.end()

    def _fed_and_done(self, point: Point | None = None) -> list[str]:
        self.case.feed(self.settings, self._rounds)
        self._rounds += 1
        return self._done(point)

    def _done(self, point: Point | None = None) -> list[str]:
        """Does the work, and returns its operations. It is killed at the point, if it comes to it."""
        if self._program is None:
            python = PYTHON_WITH_DELTA if self.case.spark == "with Delta" else sys.executable
            command = [str(python), "-m", "crash_points.worker", self.name]
            self._program = Watched(command, self._environment, self.settings.home, self.settings.kafka_port, but=NOT_KEPT)
        program = self._program
        program.arm(point)
        program.popen.stdin.write("\n")
        program.popen.stdin.flush()
        if not program.popen.stdout.readline():
            program.end()
            self._program = None
            assert program.killed_at, f"the work of {self.name} failed"
        return program.operations
