"""The demo's hourly maintenance: deletes old results, compacts tables, saves the classes of Java programs once. Nothing runs between rounds."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from infrastructure.process.waiting import Say
from infrastructure.settings import Settings
from streamgauge.demo.services import COMMAND, STOP_SECONDS
from streamgauge.platform.log_file import log_tail
from streamgauge.platform.processes import GuardedProcess
from streamgauge.system_errors import as_line

FIRST_SECONDS = 600
"""The delay of the first round after the start, when the machine is less busy."""
EVERY_SECONDS = 3600


@dataclass
class Upkeep:
    """A command that runs repeatedly, each time to its end."""

    command: Sequence[str]
    settings: Settings
    say: Say
    environment: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    process: GuardedProcess | None = None

    def __post_init__(self) -> None:
        self.name, self._due = self.command[0], self.clock() + FIRST_SECONDS

    def look(self, *, may_start: bool = True) -> None:
        """Reports a failed round, and starts one when it is due and `may_start`."""
        log = self.settings.logs / f"{self.name}.out"
        if self.process is not None and (code := self.process.exit_code) is not None:
            self.process = None
            if code:
                self.say(f"{self.name} failed: {log_tail(log, 1).removeprefix('error: ')}; it is tried again in an hour")
        if may_start and self.process is None and self.clock() >= self._due:
            self._due = self.clock() + EVERY_SECONDS
            command = [*COMMAND, *self.command]
            try:
                self.process = GuardedProcess.start(command, log=log, environment=self.environment, grace_seconds=STOP_SECONDS)
            except OSError as error:
                self.say(f"{self.name} cannot be started: {as_line(error)}; it is tried again in an hour")


def upkeep(settings: Settings, say: Say) -> list[Upkeep]:
    """Expiry of results, their Parquet files, maintenance of Delta tables, and the classes of Spark and the servers, saved for their next start."""
    base = settings.environment()
    small = base | {"STREAMGAUGE_DRIVER_MEMORY": "512m"}  # of a Spark next to the pipeline's
    return [
        Upkeep(["expire"], settings, say, environment=base),
        Upkeep(["export"], settings, say, environment=base),
        Upkeep(["maintain"], settings, say, environment=small),
        Upkeep(["fetch", "--no-download"], settings, say, environment=small),
    ]
