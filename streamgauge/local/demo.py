"""The demo: the whole application on one machine, in the foreground, with a live line a second."""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from streamgauge.local import jars
from streamgauge.local.live import LiveFigures
from streamgauge.local.platform import NAME_WIDTH, Platform
from streamgauge.local.processes import GuardedProcess, log_tail
from streamgauge.settings import Settings
from streamgauge.stop_signals import stop_requested

STOP_SECONDS = 6
"""What a service has to end in, after SIGTERM; the broker ends after them, and all of it within 10 s."""
DASHBOARD = "dashboard"
TRIGGER_SECONDS = 1.0


@dataclass(frozen=True)
class Service:
    """A child process of the demo, with what it is told beyond the demo's own environment."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def services(*, dashboard: bool, trigger_seconds: float) -> list[Service]:
    """The producers, the pipeline and the dashboard, as commands."""
    me = [sys.executable, "-m", "streamgauge.cli"]
    faults = ["--late", "0.02", "--too-late", "0.002", "--duplicates", "0.01", "--corrupt", "0.002"]
    chosen = [
        # On a small machine, queries that run back to back would leave nothing for the page.
        Service("pipeline", [*me, "run"], {"STREAMGAUGE_TRIGGER_SECONDS": str(trigger_seconds)}),
        Service("produce-nest", [*me, "produce", "nest", "--continue", "--rate", "100", "--speed-up", "60", *faults]),
        Service(
            "produce-taxi",
            [*me, "produce", "taxi", "--continue", "--start", "2024-03-01T00:00:00Z", "--speed-up", "600", "--odd", "0.005", *faults],
        ),
        Service("produce-wikimedia", [*me, "produce", "wikimedia", "--live-or-simulated", *faults]),
        Service("expire", [*me, "expire", "--every", "1 hour"]),
        # Each round starts a Spark of its own, beside that of the pipeline: it is to be small.
        Service("maintain", [*me, "maintain", "--every", "1 hour"], {"STREAMGAUGE_DRIVER_MEMORY": "512m"}),
    ]
    if dashboard:
        chosen.append(Service(DASHBOARD, [*me, "dashboard"]))
    return chosen


class Demo:
    """Starts the platform and the services, shows how they do, and ends them all."""

    def __init__(self, settings: Settings, chosen: Sequence[Service], console: Console) -> None:
        self.settings, self.services, self.console = settings, chosen, console
        self.platform = Platform(settings)
        self.children: list[GuardedProcess] = []

    def run(self, seconds: float | None = None) -> int:
        """Runs until SIGINT, SIGTERM or `seconds` have passed; returns the exit code: 1 when a service ended by itself."""
        stop = stop_requested()
        try:
            self._start()
            return self._watch(seconds, stop)
        finally:
            self._stop()

    def _start(self) -> None:
        started = time.monotonic()
        with self.console.status("fetching what is not there yet") as status:
            jars.fetch("spark", self.settings)
            status.update("starting Kafka")
            lines = self.platform.start(detached=False)
        for line in (*lines, *(f"warning: {warning}" for warning in self.platform.warnings)):
            self.console.print(line)
        for service in self.services:
            log = self.settings.logs / f"{service.name}.out"
            self.children.append(
                GuardedProcess.start(service.name, service.command, log=log, environment=service.environment, grace_seconds=STOP_SECONDS)
            )
            where = f"http://127.0.0.1:{self.settings.dashboard_port}" if service.name == DASHBOARD else f"log {log}"
            self.console.print(f"{service.name:{NAME_WIDTH}} {where}")
        self.console.print(f"up in {time.monotonic() - started:.0f} s; Spark takes some seconds more. Ctrl-C ends it all.")

    def _watch(self, seconds: float | None, stop: threading.Event) -> int:
        ends = time.monotonic() + seconds if seconds is not None else None
        figures = LiveFigures(self.settings)
        with self.console.status("") as status:
            show: Callable[[str], None] = status.update if self.console.is_terminal else self.console.print
            while not stop.wait(1) and (ends is None or time.monotonic() < ends):
                gone = next((child for child in self.children if not child.is_running), None)
                if gone is not None:
                    self.console.print(
                        f"error: {gone.name} ended (exit code {gone.popen.returncode}); the end of {gone.log}:\n{log_tail(gone.log)}",
                        markup=False,
                    )
                    return 1
                if self.platform.registry_problem is not None:
                    self.console.print(f"error: {self.platform.registry_problem}", markup=False)
                    return 1
                show(figures.line())
        return 0

    def _stop(self) -> None:
        self.console.print("stopping ...")
        for child in self.children:
            child.ask_to_stop()
        for child in self.children:
            child.stop()
        self.platform.stop_guarded()
        self.console.print("stopped; the next start goes on from here")
