"""Child processes. Guarded ones end with their parent; detached ones run until they are stopped."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from infrastructure.errors import StreamgaugeError
from infrastructure.process.logs import rotate
from infrastructure.process.stop_signals import postponed_signals
from infrastructure.process.waiting import has_ended
from infrastructure.storage.paths import identity, write_whole
from streamgauge.platform.guard import kill_group

_GUARD_PROGRAM = Path(__file__).with_name("guard.py")
KILLED_SECONDS = 10
"""How long a process may take to disappear after SIGKILL."""
EXEC_ATTEMPTS, EXEC_SECONDS = 100, 0.01
"""The number of attempts to read the command of a process, and the time between two. While a process becomes another program, it has none."""


class Guard:
    """The guard.py process of this program. It is started with the first guarded process, and again if it is killed."""

    def __init__(self) -> None:
        self._popen: subprocess.Popen[bytes] | None = None
        self._groups: dict[int, float] = {}

    def add(self, group: int, grace_seconds: float) -> None:
        """Watches over a process group from now on."""
        self._groups[group] = grace_seconds
        self._write(f"{group} {grace_seconds}\n")

    def remove(self, group: int) -> bool:
        """Forgets a process group. False if it was not watched over."""
        if self._groups.pop(group, None) is None:
            return False
        self._write(f"{group}\n")
        return True

    def keep(self) -> None:
        """Starts the guard again if it has been killed."""
        if self._popen is None or self._popen.poll() is not None:
            self._popen = subprocess.Popen(
                [sys.executable, "-E", "-S", str(_GUARD_PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            )
            self._write("".join(f"{group} {grace_seconds}\n" for group, grace_seconds in self._groups.items()))

    def _write(self, lines: str) -> None:
        if self._popen and self._popen.stdin:
            with contextlib.suppress(BrokenPipeError):  # it has been killed; the next `keep` writes all groups to a new guard
                self._popen.stdin.write(lines.encode())
                self._popen.stdin.flush()


GUARD = Guard()


@dataclass
class GuardedProcess:
    """A command that leads a process group. The whole group ends when the command ends, or when this program ends or is killed with -9."""

    popen: subprocess.Popen[bytes]
    log: Path
    grace_seconds: float
    kill_at: float | None = None

    @classmethod
    def start(
        cls, command: Sequence[str], *, log: Path, environment: Mapping[str, str] = {}, folder: Path | None = None, grace_seconds: float = 8
    ) -> Self:
        """As `start_process`. After a stop request, it is killed after `grace_seconds`."""
        with postponed_signals():  # an interrupt in between would leave a process that nothing ends
            GUARD.keep()  # first, as this may fail
            popen = start_process(command, log, environment, folder)
            GUARD.add(popen.pid, grace_seconds)
        return cls(popen, log, grace_seconds)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, as Popen returns it; None while the command runs. Kills the rest of its group."""
        code = self.popen.poll()
        if code is None:
            GUARD.keep()
        else:
            self._end_group()
        return code

    @property
    def is_running(self) -> bool:
        return self.exit_code is None

    def ask_to_stop(self) -> None:
        """Requests a stop without waiting."""
        if self.is_running and self.kill_at is None:
            self.popen.terminate()
            self.kill_at = time.monotonic() + self.grace_seconds

    def stop(self) -> int:
        """Stops the command and returns its exit code. Kills it `grace_seconds` after the first request."""
        self.ask_to_stop()
        try:
            return self.wait(max(0.0, (self.kill_at or 0.0) - time.monotonic()))
        except subprocess.TimeoutExpired:
            kill_group(self.pid)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(KILLED_SECONDS)
        return -signal.SIGKILL

    def wait(self, seconds: float | None = None) -> int:
        """Waits until the command ends, and returns its exit code. Raises TimeoutExpired after `seconds`."""
        code = self.popen.wait(seconds)
        self._end_group()
        return code

    def _end_group(self) -> None:
        if GUARD.remove(self.pid):
            kill_group(self.pid)


def start_process(
    command: Sequence[str], log: Path, environment: Mapping[str, str] = {}, folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Starts `command` in its own session, so that it outlives this process. Appends its output to `log`. folder: the folder to run in; None for this process's."""
    log.parent.mkdir(parents=True, exist_ok=True)
    rotate(log)
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=folder,
            start_new_session=True,
        )


def stop_process(process: psutil.Process, grace_seconds: float) -> None:
    """Sends SIGTERM, and SIGKILL to a process that remains after `grace_seconds`. Raises StreamgaugeError if that does not end it, or this user may not."""
    try:
        process.terminate()
        if has_ended(process, grace_seconds):
            return
        process.kill()
        if not has_ended(process, KILLED_SECONDS):
            msg = f"process {process.pid} has not ended {KILLED_SECONDS} s after it was killed; the system holds it, perhaps for a disk that does not answer"
            raise StreamgaugeError(msg)
    except psutil.NoSuchProcess:
        pass
    except psutil.AccessDenied as error:
        msg = f"process {process.pid} belongs to user {process.username()}, and this user may not end it; run this command as {process.username()}"
        raise StreamgaugeError(msg) from error


@dataclass(frozen=True)
class PidFile:
    """Identifies a process by id and an argument that no other command has, so that a reused process id is not mistaken for it.

    A copy of the file in another folder names no process: a copied STREAMGAUGE_HOME has none of the original's.

    The start time would change when the clock is set, and the rest of the command when a launcher becomes the program.
    """

    path: Path

    def write(self, pid: int, argument: str) -> None:
        """Stores the process `pid`, whose command has `argument`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps({"pid": pid, "argument": argument, "folder": identity(self.path.parent)}))

    def process(self) -> psutil.Process | None:
        """The stored process. None if it is no longer running, also after a kill.

        macOS does not show the command of another user's process: one with this id is taken for it.
        """
        try:
            stored = json.loads(self.path.read_text())
            process = psutil.Process(stored["pid"])
            folder = identity(self.path.parent)
            is_original = stored.get("folder", folder) == folder  # earlier versions stored none
            return process if is_original and stored["argument"] in _command(process) else None
        except psutil.AccessDenied:
            return process
        except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):  # or the file is damaged
            return None

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def _command(process: psutil.Process) -> list[str]:
    """The command of a process. Empty for a thread of the kernel."""
    for _ in range(EXEC_ATTEMPTS):
        if command := process.cmdline():
            return command
        time.sleep(EXEC_SECONDS)  # it is just becoming another program, as Java's launcher does
    return []
