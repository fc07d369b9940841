"""Base class of the embedded servers: start once, find by pid file, wait until ready, stop."""

import contextlib
import errno
import shlex
import shutil
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
from filelock import FileLock

from contract.errors import StreamgaugeError
from contract.java import class_data
from contract.java.runtime import java_home
from contract.process.stop_signals import postponed_signals
from contract.process.waiting import REQUEST_SECONDS, Say, waiting
from contract.settings import Settings
from streamgauge.platform.processes import GuardedProcess, PidFile, log_tail, start_process, stop_process

HOST = "127.0.0.1"
_TEMPORARY_FILES = "-Djava.io.tmpdir="
_SERVERS = {"kafka": "Kafka broker", "registry": "schema registry"}
"""The embedded servers, by the name of their folder in STREAMGAUGE_HOME."""
STALL_SECONDS = 60
"""A starting server that has written no log and used no CPU for this long hangs."""
PORT_SECONDS = 5
"""How long the port of a killed process may stay taken."""
STOP_SECONDS = 8
"""How long a server may take to end before it is killed."""


class Launch(NamedTuple):
    """How to start a server: the command, which begins with Java, the variables to add to its environment, and the file for its output."""

    command: Sequence[str]
    environment: Mapping[str, str]
    output: Path


class EmbeddedServer(ABC):
    """A server of one STREAMGAUGE_HOME. Its data outlives it; after a kill, it starts again with the same data.

    name: the name in messages. folder: its data. log: its log file. address: where it answers. ports: the ports that it listens on.
    port_advice: what to do when one of them is taken.
    """

    name: str
    folder: Path
    log: Path
    pid_file: PidFile
    ports: tuple[int, ...]
    port_advice: str
    address: str

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.guarded: GuardedProcess | None = None
        self._launch_again: Callable[[], bool] | None = None

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server answers a request. Returns quickly either way."""

    def is_ready(self) -> bool:
        """Whether the server can be used: it listens, answers, and is fully configured."""
        return accepts_connections(HOST, self.ports[0]) and self.answers()

    @property
    @abstractmethod
    def class_path(self) -> Sequence[Path]:
        """Its jars."""

    @property
    def java(self) -> Path:
        """The Java that runs it."""
        return java_home(self.settings) / "bin" / "java"

    @property
    def archive(self) -> Path:
        """The archive of its classes, whether it exists or not."""
        return class_data.archive_for(self.java, self.class_path, self.settings.cache)

    @property
    def _temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def temporary_files(self) -> str:
        """The Java option by which it writes temporary files to its own folder."""
        return f"{_TEMPORARY_FILES}{self._temporary}"

    @abstractmethod
    def _prepare(self) -> Launch:
        """Fetches and writes what a start needs."""

    @property
    def process(self) -> psutil.Process | None:
        """The running server. None if it is not running."""
        return self.pid_file.process()

    def check_ports(self) -> None:
        """Raises StreamgaugeError when the server is not running and another program uses one of its ports."""
        if self.process is None:
            for port in self.ports:
                refuse_a_taken_port(HOST, port, self.port_advice)

    def launch(self, *, detached: bool, listed_classes: Path | None = None) -> bool:
        """Starts the server's process without waiting until it is ready. False if it was already running.

        detached: the server outlives this process (`up`); otherwise it ends with it (`demo`). listed_classes: a file for the names of the
        classes that it loads. Raises StreamgaugeError when a port is taken.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / "start.lock"):  # held by another start
            if self.process is not None:
                self._launch_again = partial(self.launch, detached=detached)
                return False
            self._launch_again = None
            self.check_ports()
            shutil.rmtree(self._temporary, ignore_errors=True)  # what was killed leaves its files
            self._temporary.mkdir()
            (java, *arguments), environment, output = self._prepare()
            of_classes = class_data.options(self.archive) if listed_classes is None else [f"-XX:DumpLoadedClassList={listed_classes}"]
            command = [java, *of_classes, *arguments]
            own = next((one for one in arguments if str(self.folder) in one), arguments[-1])  # no server of another home has it
            with postponed_signals():  # an interrupt before the pid file would leave a server that nobody knows
                if detached:
                    pid = start_process(command, output, environment).pid
                else:
                    self.guarded = GuardedProcess.start(command, log=output, environment=environment, grace_seconds=STOP_SECONDS)
                    pid = self.guarded.pid
                self.pid_file.write(pid, own)
            return True

    def save_classes(self) -> None:
        """Creates the archive of the classes that the server loads, unless it exists: starts the server, which lists them, and stops it.

        Raises StreamgaugeError when the server does not start, or Java does not create the archive.
        """
        if self.archive.exists():
            return
        loaded = self.folder / "classes"
        self.launch(detached=False, listed_classes=loaded)
        self.wait_until_ready()
        self.stop()
        class_data.create(self.archive, self.java, self.class_path, loaded)

    def wait_until_ready(self, say: Say = lambda _: None) -> None:
        """Waits until the server is ready, as long as its process makes progress. Starts one that was found running and has gone again.

        Raises StreamgaugeError when the process ends or hangs, that is, writes no log and uses no CPU for STALL_SECONDS.
        """
        effort, effort_at = (0, 0.0), 0.0
        for seconds in waiting(lambda: f"the {self.name} to answer at {self.address}; its log is {self.log}", say):
            if self.is_ready():
                return
            process = self.process
            if process is None or (self.guarded and not self.guarded.is_running):
                if self._launch_again is not None:  # the guard of a killed demo was still ending it
                    self._launch_again()
                    continue
                self.pid_file.remove()
                msg = f"the {self.name} ended before it answered; the end of {self.log}:\n{log_tail(self.log)}"
                raise StreamgaugeError(msg)
            if (now := (self.log.stat().st_size if self.log.exists() else 0, _cpu_seconds(process))) != effort:
                effort, effort_at = now, seconds
            if seconds - effort_at > STALL_SECONDS:
                msg = f"the {self.name} (pid {process.pid}) does not answer at {self.address} and has made no progress for {STALL_SECONDS} s; see {self.log}, or stop it with `streamgauge down`"
                raise StreamgaugeError(msg)

    def stop(self) -> bool:
        """Stops the server. False if it was not running."""
        if self.guarded is not None:
            self.guarded.stop()
            self.guarded = None
        process = self.process
        if process is not None:
            stop_process(process, STOP_SECONDS)
        self.pid_file.remove()
        return process is not None


def _cpu_seconds(process: psutil.Process) -> float:
    """The CPU time that a process and its descendants have used."""
    with contextlib.suppress(psutil.Error):
        return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))
    return 0


def accepts_connections(host: str, port: int) -> bool:
    """Whether `port` accepts connections. Much cheaper for the server than a request."""
    try:
        with socket.create_connection((host, port), REQUEST_SECONDS):
            return True
    except OSError:
        return False


def refuse_a_taken_port(host: str, port: int, advice: str) -> None:
    """Raises StreamgaugeError if `port` is taken, with the program that uses it and the `advice`.

    A killed process keeps its ports for a moment after it has disappeared from the process list; this waits for that moment.
    """
    for seconds in waiting(lambda: f"port {port} on {host}", lambda _: None):
        error = _listening_error(host, port)
        if error is None:
            return
        if error.errno != errno.EADDRINUSE:
            msg = f"port {port} on {host} cannot be listened on ({error.strerror}); correct the address, or {advice}"
            raise StreamgaugeError(msg)
        if seconds > PORT_SECONDS or listener(port) is not None:
            msg = f"port {port} on {host} is taken by {described(listener(port))}; stop that program, or {advice}"
            raise StreamgaugeError(msg)


def described(process: psutil.Process | None) -> str:
    """The process in a message, by name and id. One of Streamgauge's is named with its home."""
    with contextlib.suppress(psutil.Error):
        if process is not None:
            return f"{_of_streamgauge(process) or process.name()}, pid {process.pid}"
    return "a program that this user may not see"


def _of_streamgauge(process: psutil.Process) -> str | None:
    """What a process is, if Streamgauge started it: the folder for temporary files of a server is in its home."""
    command: list[str] = []
    with contextlib.suppress(psutil.AccessDenied):  # the command of another user's process on macOS
        command = process.cmdline()
    for argument in command:
        parts = Path(argument.removeprefix(_TEMPORARY_FILES)).parts
        if parts[-2:] == ("dashboard", "app.py"):
            return "a dashboard of Streamgauge"
        if argument.startswith(_TEMPORARY_FILES) and parts[-1:] == ("tmp",) and parts[:-1] and parts[-2] in _SERVERS:
            home = Path(*parts[:-2])
            return f"the {_SERVERS[parts[-2]]} of STREAMGAUGE_HOME={home} (`STREAMGAUGE_HOME={shlex.quote(str(home))} streamgauge down` stops it)"
    return None


def listener(port: int) -> psutil.Process | None:
    """The process that listens on `port`. None if there is none, or if this user may not see it."""
    with contextlib.suppress(psutil.Error):
        pids = (of.pid for of in psutil.net_connections("tcp") if of.status == psutil.CONN_LISTEN and of.laddr and of.laddr.port == port)
        return next((psutil.Process(pid) for pid in pids if pid), None)
    for process in psutil.process_iter():  # macOS shows only root all connections at once
        with contextlib.suppress(psutil.Error):
            if any(of.status == psutil.CONN_LISTEN and of.laddr.port == port for of in process.net_connections("tcp")):
                return process
    return None


def is_free(port: int, host: str = HOST) -> bool:
    """Whether a server could listen on `port`."""
    return _listening_error(host, port) is None


def _listening_error(host: str, port: int) -> OSError | None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None
