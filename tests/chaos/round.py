"""A round of chaos: the whole application under load, hit by faults at random moments, and then proven right.

A round has a platform of its own. Producers send all domains with late, duplicate and corrupt events, while the pipeline is killed, Kafka is
killed, the registry is stopped, the pipeline is frozen and the producers pause. Then everything drains, and two things must agree exactly:
`streamgauge verify` with what the sinks hold, and what the producers say they have sent with what was counted (plan.disagreements).
"""

import contextlib
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import psutil
from running import environment, start_server

from chaos.plan import FREEZE, KILL_JVM, KILL_KAFKA, KILL_PYTHON, STOP_REGISTRY, Fault, disagreements, faults
from contract.create_topics import create_topics
from infrastructure.errors import StreamgaugeError
from infrastructure.settings import Settings
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.log_file import log_tail
from streamgauge.platform.processes import GuardedProcess
from streamgauge.platform.registry import EmbeddedRegistry

ME = [sys.executable, "-m", "streamgauge.cli"]
IMPERFECTIONS = ["--late", "0.05", "--too-late", "0.01", "--duplicates", "0.03", "--corrupt", "0.01"]
LOADS = {
    "nest": ["--rate", "100", "--speed-up", "60", "--start", "2026-01-01T00:00:00Z"],
    "taxi": ["--rate", "100", "--odd", "0.005"],
    "wikimedia": ["--rate", "50", "--speed-up", "20", "--start", "2026-01-01T00:00:00Z"],
}
"""By domain, the options of its producer, the rate first."""
DRAIN_SECONDS = 600
STOP_SECONDS = 300
"""How long an end is waited for: far longer than it takes on a slow and busy machine."""
PIPELINE_STOP_SECONDS = 240
"""How long the pipeline may take to finish its batches before it is killed."""
RETRY_SECONDS = 0.1


class Round:
    """One round, in a home and on ports of its own."""

    def __init__(self, settings: Settings, rng: random.Random, seconds: float, say: Callable[[str], None]) -> None:
        self.settings, self.rng, self.seconds, self.say = settings, rng, seconds, say
        self.kafka, self.registry = EmbeddedKafka(settings), EmbeddedRegistry(settings)
        self.producers: dict[str, GuardedProcess] = {}
        self.pipeline: GuardedProcess | None = None
        self._started = time.monotonic()

    def run(self) -> list[str]:
        """Runs the round; returns what is wrong in the end, a line each."""
        with contextlib.ExitStack() as ends:
            ends.callback(self.registry.stop)
            ends.callback(self.kafka.stop)
            start_server(self.kafka)
            start_server(self.registry)
            create_topics(self.settings.kafka)
            ends.callback(self._stop_children)
            self._start_pipeline()
            self._start_producers()
            self._started = time.monotonic()
            for fault in faults(self.rng, self.seconds):
                self._inject(fault)
            return self._drained()

    def _inject(self, fault: Fault) -> None:
        time.sleep(max(0.0, self._started + fault.at_second - time.monotonic()))
        self._tell(fault.what + (f" for {fault.seconds:.1f} s" if fault.seconds else ""))
        if fault.what == KILL_KAFKA:
            _kill(self.kafka.process, "java")
            self.kafka.stop()
            start_server(self.kafka)
        elif fault.what in {KILL_PYTHON, KILL_JVM}:
            pipeline = self._running_pipeline
            _kill(psutil.Process(pipeline.pid), "java" if fault.what == KILL_JVM else "python")
            _wait_for_its_end(pipeline)
            self._start_pipeline()
        elif fault.what == STOP_REGISTRY:
            self.registry.stop()
            time.sleep(fault.seconds)
            start_server(self.registry)
        else:
            frozen = [self._running_pipeline] if fault.what == FREEZE else list(self.producers.values())
            with _frozen(frozen):
                time.sleep(fault.seconds)

    def _drained(self) -> list[str]:
        self._tell("the producers finish")
        wrong = []
        sent: dict[str, Any] = {}
        for domain, producer in self.producers.items():
            if _wait_for_its_end(producer, DRAIN_SECONDS) != 0:
                return [f"the producer of {domain} ended with {producer.popen.returncode}: {log_tail(producer.log)}"]
            sent[domain] = json.loads(producer.log.read_text().splitlines()[-1])
        self._tell("the pipeline is told to stop")
        pipeline = self._running_pipeline
        pipeline.popen.send_signal(signal.SIGTERM)
        # The others: it had only just been started and was not ready to handle a signal.
        if _wait_for_its_end(pipeline) not in {0, 128 + signal.SIGTERM, -signal.SIGTERM}:
            wrong.append(f"the pipeline ended with {pipeline.popen.returncode}: {log_tail(pipeline.log)}")
        self._tell("what is left is taken")
        self._command("drain", "run", "--once")
        found = self._command("verify", "verify", "--format", "json")
        return wrong + disagreements(sent, {one["query"]: one for one in json.loads(found)})

    def _command(self, name: str, *arguments: str) -> str:
        """Runs a command to its end and returns its standard output; verify's exit code is told by what it prints."""
        log = self.settings.logs / f"{name}.out"
        process = GuardedProcess.start([*ME, *arguments], log=log, environment=environment(self.settings))
        code = _wait_for_its_end(process, DRAIN_SECONDS)
        if code not in ((0, 1) if name == "verify" else (0,)):
            msg = f"`streamgauge {' '.join(arguments)}` ended with {code}: {log_tail(log)}"
            raise StreamgaugeError(msg)
        return log.read_text().splitlines()[-1] if name == "verify" else ""

    def _start_pipeline(self) -> None:
        log = self.settings.logs / "pipeline.out"
        own = environment(self.settings, STREAMGAUGE_TRIGGER_SECONDS="1")
        self.pipeline = GuardedProcess.start([*ME, "run"], log=log, environment=own, grace_seconds=PIPELINE_STOP_SECONDS)

    def _start_producers(self) -> None:
        for domain, options in LOADS.items():
            limit = str(round(float(options[1]) * self.seconds))
            command = [
                *ME,
                "produce",
                domain,
                *options,
                *IMPERFECTIONS,
                "--limit",
                limit,
                "--seed",
                str(self.rng.randrange(1_000_000)),
                "--json",
            ]
            log = self.settings.logs / f"produce-{domain}.out"
            self.producers[domain] = GuardedProcess.start(command, log=log, environment=environment(self.settings))

    @property
    def _running_pipeline(self) -> GuardedProcess:
        if self.pipeline is None or not self.pipeline.is_running:
            msg = f"the pipeline ended by itself: {log_tail(self.settings.logs / 'pipeline.out')}"
            raise StreamgaugeError(msg)
        return self.pipeline

    def _stop_children(self) -> None:
        for child in (*self.producers.values(), self.pipeline):
            if child is not None:
                child.stop()

    def _tell(self, what: str) -> None:
        self.say(f"  {time.monotonic() - self._started:6.1f} s  {what}")


def _wait_for_its_end(process: GuardedProcess, seconds: float = STOP_SECONDS) -> int:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        msg = f"{process.log.stem} did not end within {seconds:.0f} s: {log_tail(process.log)}"
        raise StreamgaugeError(msg) from error


def _kill(command: psutil.Process | None, name: str) -> None:
    """Kills `command` and the processes below it whose name has `name` in it, until the command ends.

    One that has only just been started may not be there yet, and the first java below a pipeline is Spark's launcher, which is nothing to it.
    """
    deadline = time.monotonic() + STOP_SECONDS
    while command is not None and time.monotonic() < deadline:
        try:
            if command.status() == psutil.STATUS_ZOMBIE:
                return
            for process in (command, *command.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if name in process.name():
                        process.kill()
        except psutil.NoSuchProcess:
            return
        time.sleep(RETRY_SECONDS)
    msg = f"{command} did not end within {STOP_SECONDS} s of killing every {name} in it"
    raise StreamgaugeError(msg)


@contextlib.contextmanager
def _frozen(guarded: Iterable[GuardedProcess]) -> Iterator[None]:
    """Stops the commands and everything below them while the context lasts."""
    commands = [psutil.Process(one.pid) for one in guarded if one.is_running]
    below = [process for command in commands for process in (command, *command.children(recursive=True))]
    try:
        _send(below, signal.SIGSTOP)
        yield
    finally:
        _send(below, signal.SIGCONT)


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
