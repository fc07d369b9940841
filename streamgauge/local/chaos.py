"""Chaos: the whole application under load, hit at random moments, and then proven right.

A round has a platform of its own. Producers send all stories with late, duplicate and corrupt events, while the pipeline is killed, Kafka is
killed, the registry is stopped, the pipeline is frozen and the producers pause. Then everything drains, and two things must agree exactly:
`streamgauge verify` with what the sinks hold, and what the producers say they have sent with what was counted (chaos_plan.disagreements).
"""

import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from streamgauge.errors import StreamgaugeError
from streamgauge.kafka_topics import create_topics
from streamgauge.local.chaos_plan import FREEZE, KILL_JVM, KILL_KAFKA, KILL_PYTHON, STOP_REGISTRY, Blow, blows, disagreements
from streamgauge.local.kafka import EmbeddedKafka
from streamgauge.local.ports import free_ports
from streamgauge.local.processes import GuardedProcess, log_tail
from streamgauge.local.registry import EmbeddedRegistry
from streamgauge.settings import Settings

ME = [sys.executable, "-m", "streamgauge.cli"]
FAULTS = ["--late", "0.05", "--too-late", "0.01", "--duplicates", "0.03", "--corrupt", "0.01"]
LOADS = {
    "nest": ["--rate", "100", "--speed-up", "60", "--start", "2026-01-01T00:00:00Z"],
    "taxi": ["--rate", "100", "--odd", "0.005"],
    "wikimedia": ["--rate", "50", "--speed-up", "20", "--start", "2026-01-01T00:00:00Z"],
}
"""By story, what its producer is told, the rate first."""
DRAIN_SECONDS = 600
STOP_SECONDS = 30
PIPELINE_STOP_SECONDS = 25
"""More than the pipeline's own limit for the batches under way: one that is stopped in an orderly way is not to be killed here."""
RETRY_SECONDS = 0.1


def chaos(settings: Settings, *, rounds: int, seed: int, seconds: float, say: Callable[[str], None]) -> int:
    """Runs `rounds`, each under load for `seconds`; says what happens, and returns how many rounds were wrong.

    Round n of a seed is always the same plan. The home of a wrong round, with its logs, is kept under settings.home.
    """
    wrong_rounds = 0
    for number in range(1, rounds + 1):
        home = settings.home.absolute() / "chaos" / f"seed-{seed}-round-{number}"
        shutil.rmtree(home, ignore_errors=True)
        say(f"round {number} of {rounds}, seed {seed}, {seconds:.0f} s of load")
        rng = random.Random(f"{seed}/{number}")  # noqa: S311 - a plan, no secret
        try:
            wrong = Round(_settings_of_a_round(settings, home), rng, seconds, say).run()
        except StreamgaugeError as error:
            wrong = [str(error)]
        for line in wrong:
            say(f"  WRONG: {line}")
        say(f"round {number}: " + (f"wrong; its logs are in {home / 'logs'}" if wrong else "right: nothing lost, doubled or wrong"))
        if not wrong:
            shutil.rmtree(home, ignore_errors=True)
        wrong_rounds += bool(wrong)
    return wrong_rounds


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
            self.kafka.start(detached=False)
            self.registry.start(detached=False)
            create_topics(self.settings.kafka)
            ends.callback(self._stop_children)
            self._start_pipeline()
            self._start_producers()
            self._started = time.monotonic()
            for blow in blows(self.rng, self.seconds):
                self._strike(blow)
            return self._drained()

    def _strike(self, blow: Blow) -> None:
        time.sleep(max(0.0, self._started + blow.at_second - time.monotonic()))
        self._tell(blow.what + (f" for {blow.seconds:.1f} s" if blow.seconds else ""))
        if blow.what == KILL_KAFKA:
            _kill(self.kafka.process, "java")
            self.kafka.stop()
            self.kafka.start(detached=False)
        elif blow.what in {KILL_PYTHON, KILL_JVM}:
            pipeline = self._running_pipeline
            _kill(psutil.Process(pipeline.pid), "java" if blow.what == KILL_JVM else "python")
            _wait_for_its_end(pipeline)
            self._start_pipeline()
        elif blow.what == STOP_REGISTRY:
            self.registry.stop()
            time.sleep(blow.seconds)
            self.registry.start(detached=False)
        else:
            frozen = [self._running_pipeline] if blow.what == FREEZE else list(self.producers.values())
            with _frozen(frozen):
                time.sleep(blow.seconds)

    def _drained(self) -> list[str]:
        self._tell("the producers finish")
        wrong = []
        sent: dict[str, Any] = {}
        for story, producer in self.producers.items():
            if _wait_for_its_end(producer, DRAIN_SECONDS) != 0:
                return [f"the producer of {story} ended with {producer.popen.returncode}: {log_tail(producer.log)}"]
            sent[story] = json.loads(producer.log.read_text().splitlines()[-1])
        self._tell("the pipeline is told to stop")
        pipeline = self._running_pipeline
        pipeline.popen.send_signal(signal.SIGTERM)
        # The others: it had only just been started, and the pipeline, or its guard, was not ready to hear a signal.
        if _wait_for_its_end(pipeline) not in {0, 128 + signal.SIGTERM, -signal.SIGTERM}:
            wrong.append(f"the pipeline ended with {pipeline.popen.returncode}: {log_tail(pipeline.log)}")
        self._tell("what is left is taken")
        self._command("drain", "run", "--once")
        found = self._command("verify", "verify", "--format", "json")
        return wrong + disagreements(sent, {one["query"]: one for one in json.loads(found)})

    def _command(self, name: str, *arguments: str) -> str:
        """Runs a command to its end and returns its standard output; verify's exit code is told by what it prints."""
        log = self.settings.logs / f"{name}.out"
        process = GuardedProcess.start(name, [*ME, *arguments], log=log, environment=self.settings.environment())
        code = _wait_for_its_end(process, DRAIN_SECONDS)
        if code not in ((0, 1) if name == "verify" else (0,)):
            msg = f"`streamgauge {' '.join(arguments)}` ended with {code}: {log_tail(log)}"
            raise StreamgaugeError(msg)
        return log.read_text().splitlines()[-1] if name == "verify" else ""

    def _start_pipeline(self) -> None:
        log = self.settings.logs / "pipeline.out"
        environment = self.settings.environment() | {"STREAMGAUGE_TRIGGER_SECONDS": "1"}
        self.pipeline = GuardedProcess.start(
            "pipeline", [*ME, "run"], log=log, environment=environment, grace_seconds=PIPELINE_STOP_SECONDS
        )

    def _start_producers(self) -> None:
        for story, options in LOADS.items():
            limit = str(round(float(options[1]) * self.seconds))
            command = [*ME, "produce", story, *options, *FAULTS, "--limit", limit, "--seed", str(self.rng.randrange(1_000_000)), "--json"]
            log = self.settings.logs / f"produce-{story}.out"
            self.producers[story] = GuardedProcess.start(story, command, log=log, environment=self.settings.environment())

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


def _settings_of_a_round(settings: Settings, home: Path) -> Settings:
    kafka_port, _, registry_port = free_ports(3)
    return replace(
        settings,
        home=home,
        kafka_bootstrap_servers="",
        schema_registry_url="",
        kafka_client_properties=None,
        schema_registry_properties=None,
        alert_webhook_url="",
        kafka_port=kafka_port,
        registry_port=registry_port,
    )


def _wait_for_its_end(process: GuardedProcess, seconds: float = STOP_SECONDS) -> int:
    try:
        return process.popen.wait(seconds)
    except subprocess.TimeoutExpired as error:
        msg = f"{process.name} did not end within {seconds:.0f} s: {log_tail(process.log)}"
        raise StreamgaugeError(msg) from error


def _kill(guard: psutil.Process | None, name: str) -> None:
    """Kills every process below `guard` whose name has `name` in it, until the guard ends too.

    One that has only just been started may not be there yet, and the first java below a pipeline is Spark's launcher, which is nothing to it.
    """
    deadline = time.monotonic() + STOP_SECONDS
    while guard is not None and time.monotonic() < deadline:
        try:
            if guard.status() == psutil.STATUS_ZOMBIE:
                return
            for process in guard.children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    if name in process.name():
                        process.kill()
        except psutil.NoSuchProcess:
            return
        time.sleep(RETRY_SECONDS)
    msg = f"{guard} did not end within {STOP_SECONDS} s of killing every {name} below it"
    raise StreamgaugeError(msg)


@contextlib.contextmanager
def _frozen(guarded: Iterable[GuardedProcess]) -> Iterator[None]:
    """Stops everything below the guards while the context lasts; the guards themselves go on."""
    below = [process for one in guarded if one.is_running for process in psutil.Process(one.pid).children(recursive=True)]
    try:
        _send(below, signal.SIGSTOP)
        yield
    finally:
        _send(below, signal.SIGCONT)


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
