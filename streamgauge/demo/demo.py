"""The demo: the whole application on one machine, in the foreground, with a status line every second. Restarts what ends."""

import os
import shutil
import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from rich.console import Console
from rich.status import Status

from contract.domains.domain import Domain
from contract.query_status import FAILED, IDLE, RUNNING
from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from infrastructure.java.runtime import java_home
from infrastructure.output.terminal import can_redraw
from infrastructure.process.locks import alone
from infrastructure.process.waiting import Reminder, Say
from infrastructure.settings import Settings
from infrastructure.text import size_text
from streamgauge.demo.background import EVERYTHING_RUNS, pid_file
from streamgauge.demo.disk import DiskSpace, most_bytes_of_topics
from streamgauge.demo.live import LiveFigures, query_states
from streamgauge.demo.services import DASHBOARD, PIPELINE, Child
from streamgauge.demo.supervision import Supervised
from streamgauge.demo.upkeep import upkeep
from streamgauge.platform.kafka import EmbeddedKafka
from streamgauge.platform.platform import NAME_WIDTH, Platform

SECONDS_BETWEEN_LINES = 1
FIRST_ROW_SECONDS = 60
"""The longest time that the children that start after the first row wait for it."""
QUERIES_SECONDS = 300
"""How long queries may take to begin after each part is ready, before the demo says that everything else runs."""
MIN_DISK_BYTES = 50_000_000
"""With less free space, nothing that is started works."""


class Demo:
    """Starts the platform and the services, supervises them, shows their figures, and stops them all."""

    def __init__(
        self,
        settings: Settings,
        console: Console,
        children: Sequence[Child],
        figures: LiveFigures,
        domains: Sequence[Domain],
        *,
        opens_page: bool = False,
    ) -> None:
        """figures: those that `children` measure by. domains: whose queries are to begin. opens_page: that of the dashboard, in a browser."""
        self.settings, self.console, self.children, self.figures = settings, console, children, figures
        self.platform = Platform(settings, say=self._say)
        self.upkeep = upkeep(settings, self._say)
        self._opens_page = opens_page
        self._domains, self._not_begun = domains, ["the first query"]
        self._began, self._began_at = time.monotonic(), datetime.now(UTC)
        self._ready_at = self._began

    def run(self, seconds: float | None = None) -> None:
        """Runs until SIGINT, SIGTERM, or for `seconds`.

        Raises StreamgaugeError when a restart cannot help, e.g. when a port is taken, or another demo runs with the same STREAMGAUGE_HOME.
        """
        refusal = f"a demo is already running in {self.settings.home}, and two would send events to the same topics; stop it with `streamgauge down`, or choose another STREAMGAUGE_HOME"
        with alone(self.settings.home / "demo.lock", refusal):
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, _interrupt)
            try:
                pid_file(self.settings).write(os.getpid(), "demo")
                self._watch(self._start(), seconds)
            except KeyboardInterrupt:
                pass
            finally:
                self._stop()
                pid_file(self.settings).remove()

    def _start(self) -> list[Supervised]:
        self.platform.check_ports()
        for child in self.children:
            child.check()
        java_home(self.settings)
        for bundle in jars.spark_bundles(self.settings):
            if jars.missing(bundle, self.settings):  # the pipeline itself checks the jars that exist
                jars.fetch(bundle, self.settings)
        self._say("starting Kafka" if self.platform.servers else "looking for Kafka")
        self.platform.launch(detached=False)
        for child in self.children:
            if child.starts == "with Kafka":  # Spark takes longest to start
                child.start()
        self.platform.wait_until_ready(self._say, with_registry=False)
        self.figures.ask()
        servers = [Supervised(server, self._say, is_ready=isinstance(server, EmbeddedKafka)) for server in self.platform.servers]
        self._say(f"starting {', '.join(child.name for child in self.children if child.starts != 'after the first row')}")
        supervised = [Supervised(child, self._say) for child in self.children]
        for child, service in zip(self.children, supervised, strict=True):
            if child.process is not None:
                service.watch()
            elif child.starts == "after Kafka":
                service.start()
            else:
                service.start_in(FIRST_ROW_SECONDS)
        return [*servers, *supervised]

    def _watch(self, supervised: Sequence[Supervised], seconds: float | None) -> None:
        ends = time.monotonic() + (float("inf") if seconds is None else seconds)
        shown = Reminder()
        disk = DiskSpace(self.settings, [service for service in supervised if service.part.name.startswith("produce-")], self._say)
        if not self.settings.kafka_bootstrap_servers:
            self._say(f"topics take up to {size_text(most_bytes_of_topics())}; archives grow as long as the demo runs")
        with self.console.status("") as status:
            while time.monotonic() < ends:
                self.figures.ask()
                self._look(supervised)
                disk.look()
                for task in self.upkeep:
                    task.look(may_start=all(other.process is None for other in self.upkeep))  # each is a Java program
                self._show(supervised, status, shown)
                time.sleep(SECONDS_BETWEEN_LINES)
        self._say(self.figures.line())

    def _look(self, supervised: Sequence[Supervised]) -> None:
        for service in supervised:
            if not service.is_running:
                self._raise_if_disk_is_full()
            if service.look():
                self._say(f"{service.part.name:{NAME_WIDTH}} {service.part.does}")
                if service.part.name == DASHBOARD and self._opens_page:
                    open_page(service.part.does, self._say)
                    self._opens_page = False
                if service.part.name == PIPELINE:
                    for other in supervised:
                        other.wait_no_longer()
        if not all(service.is_ready for service in supervised):
            self._ready_at = time.monotonic()
        elif self._not_begun:
            with suppress(StreamgaugeError):  # the next look asks again
                self._look_at_queries(query_states(self.settings, self._domains, self._began_at))

    def _look_at_queries(self, states: Mapping[str, str]) -> None:
        if states:
            self._not_begun = [query for query, state in states.items() if state not in {RUNNING, IDLE, FAILED}]
        if not self._not_begun or time.monotonic() - self._ready_at > QUERIES_SECONDS:
            problems = {"given up": [query for query, state in states.items() if state == FAILED], "not begun": self._not_begun}
            summary = " and ".join(f"{', '.join(names)} {problem}" for problem, names in problems.items() if names)
            but = f", but {summary}; `streamgauge status` says why" if summary else ""
            self._say(f"{EVERYTHING_RUNS}{but}; Ctrl-C ends it")
            self._not_begun = []

    def _show(self, supervised: Sequence[Supervised], status: Status, shown: Reminder) -> None:
        if can_redraw(self.console):
            status.update(self.figures.line())
        if shown.is_due():
            not_ready = [service.part.name for service in supervised if not service.is_ready and not service.is_paused]
            if missing := not_ready or self._not_begun:
                self._say(f"waiting for {', '.join(missing)}; logs are in {self.settings.logs}")
            if not can_redraw(self.console):
                self._say(self.figures.line())

    def _raise_if_disk_is_full(self) -> None:
        if shutil.disk_usage(self.settings.home).free < MIN_DISK_BYTES:
            msg = f"the disk of STREAMGAUGE_HOME={self.settings.home} is full; delete something, or choose another STREAMGAUGE_HOME"
            raise StreamgaugeError(msg)

    def _stop(self) -> None:
        started = [*(child.process for child in self.children), *(task.process for task in self.upkeep)]
        processes = [process for process in started if process is not None]
        if not processes and all(server.guarded is None for server in self.platform.servers):
            return
        self._say("stopping ...")
        for process in processes:
            process.ask_to_stop()
        for process in processes:
            process.stop()
        self.platform.stop_guarded()
        self._say("stopped; the next start continues from here")

    def _say(self, line: str) -> None:
        self.console.print(f"{time.monotonic() - self._began:5.0f} s  {line}")


def open_page(url: str, say: Say) -> None:
    """Opens `url` in the user's browser, without waiting for it. Says so if there is no screen for one, as on a server."""
    if sys.platform != "darwin" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        say(f"there is no screen for a browser here; open {url}")
        return
    threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()  # some browsers end only when they are closed


def _interrupt(*_: object) -> None:
    """Interrupts the current work. A second signal has its default effect."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise KeyboardInterrupt
