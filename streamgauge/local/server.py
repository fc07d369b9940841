"""What the embedded servers have in common: started once, found again by a pid file, waited for until they answer, stopped."""

import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil
from filelock import FileLock, Timeout

from streamgauge.errors import StreamgaugeError
from streamgauge.local.processes import GuardedProcess, PidFile, log_tail, start_detached, stop_process

HOST = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 8
_SECONDS_BETWEEN_QUESTIONS = 0.05


class Launch(NamedTuple):
    """How a server is started: the command, what its environment has besides, and the file that its output goes to."""

    command: Sequence[str]
    environment: Mapping[str, str]
    output: Path


class EmbeddedServer(ABC):
    """A server of one STREAMGAUGE_HOME. Its data outlives it; one that was killed starts again with its data.

    name: what messages call it. folder: its data. log: the file to look at when something is wrong. address: where it answers.
    ports: those it listens on. port_advice: what a person can do when one of them is taken.
    """

    name: str
    folder: Path
    log: Path
    pid_file: PidFile
    ports: tuple[int, ...]
    port_advice: str
    address: str

    def __init__(self) -> None:
        self.guarded: GuardedProcess | None = None

    @abstractmethod
    def answers(self) -> bool:
        """Whether it answers a request; soon, either way."""

    @abstractmethod
    def _prepare(self) -> Launch:
        """Fetches and writes whatever a start needs."""

    def _settle(self) -> None:  # noqa: B027 - most servers are as they should be
        """What is to be asked of the server once it answers, before anyone else uses it. May be done again."""

    @property
    def process(self) -> psutil.Process | None:
        """The running server (or the guard that it runs under), or None."""
        return self.pid_file.process()

    def check_ports(self) -> None:
        """Raises StreamgaugeError when the server does not run, and another program has one of its ports."""
        if self.process is None:
            for port in self.ports:
                _refuse_a_taken_port(port, self.port_advice)

    def start(self, *, detached: bool) -> bool:
        """Starts the server and waits until it answers; False if it was running already.

        `detached`: it outlives this process (`up`); otherwise it ends with it (`demo`).
        Raises StreamgaugeError when a port is taken, another start is under way, or the server ends instead of answering.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / "start.lock", timeout=START_SECONDS):
                was_running = self.process is not None
                if not was_running:
                    self._launch(detached=detached)
                self._wait_until_it_answers()
                self._settle()
        except Timeout as error:
            msg = f"another start of the {self.name} in {self.folder} has been under way for {START_SECONDS} s; wait for it, or look at {self.log}"
            raise StreamgaugeError(msg) from error
        return not was_running

    def ask_to_stop(self) -> None:
        """Tells a server that this process guards to stop, without waiting for it."""
        if self.guarded is not None:
            self.guarded.ask_to_stop()

    def stop(self) -> bool:
        """Stops the server; False if none was running."""
        if self.guarded is not None:
            self.guarded.stop()
            self.guarded = None
        process = self.process
        if process is not None:
            stop_process(process, STOP_SECONDS)
        self.pid_file.remove()
        return process is not None

    def _launch(self, *, detached: bool) -> None:
        self.check_ports()
        command, environment, output = self._prepare()
        if detached:
            self.pid_file.write(start_detached(command, log=output, environment=environment).pid)
        else:
            self.guarded = GuardedProcess.start(self.folder.name, command, log=output, environment=environment, grace_seconds=STOP_SECONDS)
            self.pid_file.write(self.guarded.pid)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            process = self.process
            if process is None or (self.guarded and not self.guarded.is_running):
                self.pid_file.remove()
                msg = f"the {self.name} ended before it answered; the end of {self.log}:\n{log_tail(self.log)}"
                raise StreamgaugeError(msg)
            if time.monotonic() > deadline:
                msg = f"the {self.name} (pid {process.pid}) does not answer at {self.address} after {START_SECONDS} s; see {self.log}, or stop it with `streamgauge down`"
                raise StreamgaugeError(msg)
            time.sleep(_SECONDS_BETWEEN_QUESTIONS)


def _refuse_a_taken_port(port: int, advice: str) -> None:
    if not is_free(port):
        msg = f"port {port} on {HOST} is taken{_by_whom(port)}; stop that program, or {advice}"
        raise StreamgaugeError(msg)


def _by_whom(port: int) -> str:
    process = listener(port)
    try:
        return f" by {process.name()}, pid {process.pid}" if process else ""
    except psutil.Error:
        return ""


def listener(port: int) -> psutil.Process | None:
    """The process that listens on `port`, as far as this user may see; None if none does, or it cannot be known."""
    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port and connection.pid:
                return psutil.Process(connection.pid)
    except psutil.Error:
        return None
    return None


def is_free(port: int) -> bool:
    """Whether a server could listen on `port`, on loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
