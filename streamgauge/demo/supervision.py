"""Restarts the parts of the demo when they end, after 1, 2, 4 ... 30 seconds."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from infrastructure.errors import StreamgaugeError
from infrastructure.process.waiting import Say
from streamgauge.platform.log_file import log_tail
from streamgauge.system_errors import as_line

BACK_OFF_SECONDS = 30
"""A part that has ended is restarted after 1, 2, 4 ... seconds, and at most after this many."""
STEADY_SECONDS = 60
"""A part that has run this long is restarted after one second again."""
REFUSED_STARTS = 3
"""How often in a row a part may fail to start, for example because its port is taken, before the demo ends."""


class Part(Protocol):
    """A part of the demo: an embedded server, or a child process. name, last_log: the log file that it wrote to last, for messages. does: what is printed when it is ready."""

    name: str

    @property
    def does(self) -> str: ...
    @property
    def last_log(self) -> Path: ...

    def start(self) -> None:
        """Starts it without waiting until it is ready. Raises StreamgaugeError when it cannot be started."""

    def ask_to_stop(self) -> None:
        """Requests a stop without waiting."""

    @property
    def exit_code(self) -> int | None:
        """The exit code of its process; None while it runs."""

    def measure(self) -> int:
        """A number that is higher than at its start once the part is ready."""


class Supervised:
    """A part and its restarts. say: called with a line when the part has ended. is_ready: True for a part that runs already."""

    def __init__(self, part: Part, say: Say, clock: Callable[[], float] = time.monotonic, *, is_ready: bool = False) -> None:
        self.part, self._say, self._clock = part, say, clock
        self.is_ready = is_ready
        self._failures, self._refused, self._started, self._before = 0, 0, clock(), 0
        self._start_at: float | None = None
        self._waits, self.is_paused = False, False

    def start(self) -> None:
        """Starts the part. Raises StreamgaugeError when it cannot be started."""
        self.watch()
        self.part.start()
        self._refused = 0

    def start_in(self, seconds: float) -> None:
        """Schedules the first start: `look` starts the part after `seconds`, or as soon as `wait_no_longer` was called."""
        self._waits, self._start_at = True, self._clock() + seconds

    def wait_no_longer(self) -> None:
        """Ends the wait of `start_in`, if the part still waits."""
        if self._waits:
            self._start_at = self._clock()

    def pause(self) -> None:
        """Stops the part. It is not restarted before `resume`."""
        self.is_paused, self.is_ready = True, False
        self.part.ask_to_stop()

    def resume(self) -> None:
        """Has `look` start the part again."""
        self.is_paused, self._start_at = False, self._clock()

    def watch(self) -> None:
        """Begins to watch a part that has just been started."""
        self.is_ready, self._waits, self._start_at, self._started = False, False, None, self._clock()
        self._before = self.part.measure()

    def look(self) -> bool:
        """Starts the part when that is due. Returns whether it has become ready since the last call.

        Raises the last error, a StreamgaugeError or OSError, when it could not be started REFUSED_STARTS times in a row.
        """
        if self.is_paused:
            _ = self.part.exit_code  # ends what it has left behind
        elif self._start_at is not None:
            if self._clock() >= self._start_at:
                self._try_to_start()
        elif (code := self.part.exit_code) is not None:
            if self._clock() - self._started > STEADY_SECONDS:
                self._failures = 0
            self._postpone(_ending(code, self.part.last_log))
        elif not self.is_ready:
            self.is_ready = self.part.measure() > self._before
            return self.is_ready
        return False

    @property
    def is_running(self) -> bool:
        """Whether its process ran at the last call of `look`."""
        return self._start_at is None

    def _try_to_start(self) -> None:
        try:
            self.start()
        except (StreamgaugeError, OSError) as error:
            # What has ended may still be letting go of its port, or memory may be short for a moment.
            self._refused += 1
            if self._refused >= REFUSED_STARTS:
                raise
            self._postpone(f"cannot be started: {as_line(error) if isinstance(error, OSError) else error}")

    def _postpone(self, problem: str) -> None:
        seconds = min(2**self._failures, BACK_OFF_SECONDS)
        self._failures += 1
        self.is_ready, self._start_at = False, self._clock() + seconds
        self._say(f"{self.part.name} {problem}; it is started again in {seconds} s")


def _ending(code: int, log: Path) -> str:
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        return f"was ended by {signal.Signals(number).name}"
    last = log_tail(log, 1).removeprefix("error: ")
    return f"ended (exit code {code}{f': {last}' if last else ''})"
