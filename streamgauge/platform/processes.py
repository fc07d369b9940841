"""Child processes. Guarded ones end with their parent; detached ones run until they are stopped."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

GUARD = Path(__file__).with_name("guard.py")
LOG_TAIL_LINES = 5


@dataclass
class GuardedProcess:
    """A command under guard.py. It ends when this process ends, closes it, or is killed with -9."""

    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None, grace_seconds: float = 8
    ) -> "GuardedProcess":
        """Starts `command` and appends its output to `log`. After a stop request, it is killed after `grace_seconds`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [sys.executable, "-E", "-S", str(GUARD), str(grace_seconds), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        return cls(name, popen, log)

    @property
    def pid(self) -> int:
        """The guard's process id."""
        return self.popen.pid

    @property
    def is_running(self) -> bool:
        """Whether the command is running."""
        return self.popen.poll() is None

    def ask_to_stop(self) -> None:
        """Requests a stop without waiting."""
        if self.popen.stdin and not self.popen.stdin.closed:
            self.popen.stdin.close()

    def stop(self) -> int:
        """Stops the command and returns its exit code. The guard limits how long this takes."""
        self.ask_to_stop()
        return self.popen.wait()


def start_detached(command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None) -> psutil.Process:
    """Starts `command` in its own session, so that it outlives this process. Appends its output to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        popen = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
    return psutil.Process(popen.pid)


def stop_process(process: psutil.Process, grace_seconds: float) -> None:
    """Sends SIGTERM, and SIGKILL to processes that remain after `grace_seconds`."""
    try:
        process.terminate()
        process.wait(grace_seconds)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()
    except psutil.NoSuchProcess:
        pass


@dataclass(frozen=True)
class PidFile:
    """Identifies a process by id and start time, so that a reused process id is not mistaken for it."""

    path: Path

    def write(self, pid: int) -> None:
        """Stores the process `pid`."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"pid": pid, "started": psutil.Process(pid).create_time()}))

    def process(self) -> psutil.Process | None:
        """The stored process. None if it is no longer running, also after a kill."""
        try:
            remembered = json.loads(self.path.read_text())
            process = psutil.Process(remembered["pid"])
            is_the_same = process.create_time() == remembered["started"] and process.status() != psutil.STATUS_ZOMBIE
        except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
            return None
        return process if is_the_same else None

    def remove(self) -> None:
        """Deletes the file."""
        self.path.unlink(missing_ok=True)


def log_tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The last lines of a log, for error messages about its process."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
