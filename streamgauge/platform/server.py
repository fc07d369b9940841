"""Base class of the embedded servers: start once, find by pid file, wait until ready, stop."""

import contextlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
from filelock import FileLock

from infrastructure.errors import StreamgaugeError
from infrastructure.java import class_data
from infrastructure.java.runtime import java_home
from infrastructure.process.stop_signals import postponed_signals
from infrastructure.process.waiting import Say, waiting
from infrastructure.settings import Settings
from streamgauge.platform.listening import HOST, TEMPORARY_FILES, accepts_connections, refuse_a_taken_port
from streamgauge.platform.log_file import log_tail
from streamgauge.platform.processes import GuardedProcess, PidFile, start_process, stop_process

STALL_SECONDS = 60
"""A starting server that has written no log and used no CPU for this long hangs."""
STOP_SECONDS = 8
"""How long a server may take to end before it is killed."""


class Launch(NamedTuple):
    """How to start a server, in its folder: the command, which begins with Java, the variables to add to its environment, and the file for its output."""

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
        self._output: Path | None = None

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server answers a request. Returns quickly either way."""

    @property
    def does(self) -> str:
        """The text that the demo prints when the server is ready."""
        return self.address

    def is_ready(self) -> bool:
        """Whether the server can be used: it listens, answers, and is fully configured."""
        return accepts_connections(HOST, self.ports[0]) and self.answers()

    @property
    def last_log(self) -> Path:
        """The file that it wrote to last: its log or its output, in which Java says why it does not start."""
        written = [file for file in (self.log, self._output) if file is not None and file.exists()]
        return max(written, key=lambda file: file.stat().st_mtime_ns, default=self.log)

    @property
    @abstractmethod
    def class_path(self) -> Sequence[Path]:
        """The jars of the server."""

    @property
    def java(self) -> Path:
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
        return f"{TEMPORARY_FILES}{self._temporary}"

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
                if self.guarded is not None and not self.guarded.is_running:  # another program has started it again
                    self.guarded = None
                self._launch_again = partial(self.launch, detached=detached)
                return False
            self._launch_again = None
            self.check_ports()
            shutil.rmtree(self._temporary, ignore_errors=True)  # what was killed leaves its files
            self._temporary.mkdir()
            (java, *arguments), environment, output = self._prepare()
            self._output = output
            class_options = class_data.options(self.archive) if listed_classes is None else [f"-XX:DumpLoadedClassList={listed_classes}"]
            command = [java, *class_options, *arguments]
            # No server of another home has this argument.
            own_argument = next((argument for argument in arguments if str(self.folder) in argument), arguments[-1])
            with postponed_signals():  # an interrupt before the pid file would leave a server that nobody knows
                if detached:
                    pid = start_process(command, output, environment, self.folder).pid
                else:
                    self.guarded = GuardedProcess.start(
                        command, log=output, environment=environment, folder=self.folder, grace_seconds=STOP_SECONDS
                    )
                    pid = self.guarded.pid
                self.pid_file.write(pid, own_argument)
            return True

    def start(self) -> None:
        """Starts the server as a part of this process, without waiting until it is ready. As `launch`."""
        self.launch(detached=False)

    def ask_to_stop(self) -> None:
        """Requests a stop without waiting, if this process started the server."""
        if self.guarded is not None:
            self.guarded.ask_to_stop()

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs. 0 for a server that another process started and that has ended."""
        if self.guarded is not None:
            return self.guarded.exit_code
        return None if self.process is not None else 0

    def measure(self) -> int:
        return self.is_ready()

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
                msg = f"the {self.name} ended before it answered; the end of {self.last_log}:\n{log_tail(self.last_log)}"
                raise StreamgaugeError(msg)
            if (current := (self.log.stat().st_size if self.log.exists() else 0, _cpu_seconds(process))) != effort:
                effort, effort_at = current, seconds
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
        return sum(sum(member.cpu_times()[:2]) for member in (process, *process.children(recursive=True)))
    return 0
