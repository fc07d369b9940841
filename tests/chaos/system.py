"""The whole application on a disk and on ports of its own, whose parts can be killed, frozen and cut off."""

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil
from running import environment, start_server

from chaos.relay import HOST, Relay
from contract.create_topics import create_topics
from contract.domains import DOMAINS
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.log_file import log_tail
from streamgauge.platform.processes import GuardedProcess
from streamgauge.platform.registry import EmbeddedRegistry
from streamgauge.platform.server import EmbeddedServer

T = TypeVar("T")
ME = [sys.executable, "-m", "streamgauge.cli"]
STOP_SECONDS = 300
"""How long an end is waited for: far longer than it takes on a slow and busy machine."""
PIPELINE_STOP_SECONDS = 240
"""How long the pipeline may take to finish its batches before it is killed."""
RETRY_SECONDS = 0.1
TORN_BYTES = 500
"""A part of a record batch that Kafka was killed before it had written it."""


class _Kafka(EmbeddedKafka):
    """A broker that its clients reach through a relay."""

    def __init__(self, settings: Settings, relayed_port: int) -> None:
        super().__init__(settings)
        self._relayed_port = relayed_port

    def _server_properties(self) -> dict[str, str | int]:
        return super()._server_properties() | {"advertised.listeners": f"PLAINTEXT://{HOST}:{self._relayed_port}"}


class System:
    """The application between `__enter__` and `__exit__`. settings: those of its clients, which reach the servers through relays.

    logs: a folder for what the commands print, which no full disk loses.
    """

    def __init__(self, settings: Settings, logs: Path) -> None:
        self.logs = logs
        self.to_kafka, self.to_registry = Relay(settings.kafka_port), Relay(settings.registry_port)
        self.settings = replace(settings, kafka_port=self.to_kafka.port, registry_port=self.to_registry.port)
        self.kafka, self.registry = _Kafka(settings, self.to_kafka.port), EmbeddedRegistry(settings)
        self.producers: dict[str, GuardedProcess] = {}
        self._pipeline: GuardedProcess | None = None
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._ends.enter_context(self.to_kafka)
        self._ends.enter_context(self.to_registry)
        for server in (self.kafka, self.registry):
            self._ends.callback(server.stop)
            start_server(server)
        create_topics(self.settings.kafka)
        self._ends.callback(self._stop_children)
        self.start_pipeline()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ends.close()

    @property
    def pipeline(self) -> GuardedProcess:
        """Raises StreamgaugeError when it has ended by itself."""
        if self._pipeline is None or not self._pipeline.is_running:
            msg = f"the pipeline ended by itself: {log_tail(self.logs / 'pipeline.out')}"
            raise StreamgaugeError(msg)
        return self._pipeline

    @property
    def driver(self) -> psutil.Process:
        """The JVM of the pipeline."""
        return _wait_for(
            lambda: next((one for one in psutil.Process(self.pipeline.pid).children(recursive=True) if one.name() == "java"), None),
            "the pipeline to start its JVM",
        )

    def start_pipeline(self) -> None:
        own = environment(self.settings, STREAMGAUGE_TRIGGER_SECONDS="1")
        log = self.logs / "pipeline.out"
        self._pipeline = GuardedProcess.start([*ME, "run"], log=log, environment=own, grace_seconds=PIPELINE_STOP_SECONDS)

    def start_producer(self, domain: str, options: Sequence[str]) -> None:
        log = self.logs / f"produce-{domain}.out"
        command = [*ME, "produce", domain, *options]
        self.producers[domain] = GuardedProcess.start(command, log=log, environment=environment(self.settings))

    def kill_pipeline(self, name: str = "") -> None:
        """Kills those of its processes with `name` in theirs, until all have ended, and starts it again."""
        pipeline, self._pipeline = self.pipeline, None
        kill(psutil.Process(pipeline.pid), name)
        ended(pipeline)
        self.start_pipeline()

    def kill_producer(self, domain: str) -> None:
        self.producers.pop(domain).popen.kill()

    def kill_server(self, server: EmbeddedServer, *, is_torn: bool = False) -> None:
        """Kills a server, and starts it again. is_torn: the last record batch of each source topic was not written as a whole."""
        kill(server.process)
        server.stop()
        if is_torn:
            for domain in DOMAINS:
                for topic in domain.sources:
                    _tear(self.kafka.folder / "data", topic.name)
        start_server(server)

    def kill_all(self) -> None:
        pipeline, self._pipeline = self.pipeline, None
        for process in (
            self.kafka.process,
            self.registry.process,
            *(psutil.Process(one.pid) for one in (*self.producers.values(), pipeline)),
        ):
            if process is not None:
                for one in (process, *process.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        one.kill()
        self.producers.clear()
        ended(pipeline)
        for server in (self.kafka, self.registry):
            server.stop()
            start_server(server)
        self.start_pipeline()

    def revive(self) -> None:
        """Starts the servers and the pipeline anew, as somebody does who has freed the disk: Kafka ends by itself some time after it was full."""
        self.kill_server(self.kafka)
        self.kill_server(self.registry)
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.popen.kill()
            ended(pipeline)
        self.start_pipeline()

    def drain(self) -> None:
        """Stops the pipeline, and takes what is left. Raises StreamgaugeError when either fails."""
        pipeline, self._pipeline = self.pipeline, None
        pipeline.popen.send_signal(signal.SIGTERM)
        # The others: it had only just been started and was not ready to handle a signal.
        if (code := ended(pipeline)) not in {0, 128 + signal.SIGTERM, -signal.SIGTERM}:
            msg = f"the pipeline ended with {code}: {log_tail(pipeline.log)}"
            raise StreamgaugeError(msg)
        log = self.logs / "drain.out"
        if code := ended(GuardedProcess.start([*ME, "run", "--once"], log=log, environment=environment(self.settings)), 2 * STOP_SECONDS):
            msg = f"`streamgauge run --once` ended with {code}: {log_tail(log)}"
            raise StreamgaugeError(msg)

    def _stop_children(self) -> None:
        for child in (*self.producers.values(), self._pipeline):
            if child is not None:
                child.stop()


def _tear(data: Path, topic: str) -> None:
    for partition in data.glob(f"{topic}-[0-9]*"):
        newest = max(partition.glob("*.log"), default=None)
        if newest is not None:
            with newest.open("ab") as segment:
                segment.write(random.randbytes(TORN_BYTES))


def ended(process: GuardedProcess, seconds: float = STOP_SECONDS) -> int:
    """The exit code of a process that ends by itself. Raises StreamgaugeError when it does not."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        msg = f"{process.log.stem} did not end within {seconds:.0f} s: {log_tail(process.log)}"
        raise StreamgaugeError(msg) from error


def kill(command: psutil.Process | None, name: str = "") -> None:
    """Kills `command` and the processes below it whose name has `name` in it, until the command ends.

    One that has only just been started may not be there yet, and the first java below a pipeline is Spark's launcher, which is nothing to it.
    """

    def has_ended() -> bool:
        if command is None or not command.is_running() or command.status() == psutil.STATUS_ZOMBIE:
            return True
        for process in (command, *command.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                if name in process.name():
                    process.kill()
        return False

    def has_ended_or_is_gone() -> bool:
        try:
            return has_ended()
        except psutil.NoSuchProcess:
            return True

    _wait_for(has_ended_or_is_gone, f"{command} to end after every {name or 'process'} in it was killed")


@contextlib.contextmanager
def frozen(processes: Iterable[psutil.Process]) -> Iterator[None]:
    """Stops the processes and everything below them while the context lasts."""
    below = [process for command in processes for process in (command, *command.children(recursive=True))]
    try:
        _send(below, signal.SIGSTOP)
        yield
    finally:
        _send(below, signal.SIGCONT)


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _wait_for(probe: Callable[[], T], what: str) -> T:
    deadline = time.monotonic() + STOP_SECONDS
    while not (answer := probe()):
        if time.monotonic() > deadline:
            msg = f"waited {STOP_SECONDS} s for {what}"
            raise StreamgaugeError(msg)
        time.sleep(RETRY_SECONDS)
    return answer
