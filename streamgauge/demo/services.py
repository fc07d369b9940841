"""The parts of the demo that are child processes."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from contract.domains import DOMAINS, taxi
from contract.domains.domain import Domain
from contract.topics import VERDICTS
from dashboard.server import dashboard_url
from infrastructure.process.waiting import FINISH_SECONDS
from infrastructure.settings import Settings
from streamgauge.demo.live import RESULTS, LiveFigures
from streamgauge.demo.ports import next_free
from streamgauge.platform.listening import HOST, accepts_connections, refuse_a_taken_port
from streamgauge.platform.processes import GuardedProcess

PIPELINE, DASHBOARD = "pipeline", "dashboard"
Start = Literal["with Kafka", "after Kafka", "after the first row"]
TRIGGER_SECONDS = 3.0
"""With one second, the queries of all domains keep two cores busy."""
STOP_SECONDS = FINISH_SECONDS + 15
"""How long a command may take to end before it is killed. Includes stopping Spark, which has a limit of 10 s of its own."""
COMMAND = (sys.executable, "-P", "-m", "streamgauge.cli")
"""-P: Python does not import a package of the same name from the current folder."""
WITHOUT_SECRETS = {"ALERT_WEBHOOK_URL": "", "STREAMGAUGE_DATABASE_URL": ""}
"""Unsets secrets that only other services need."""
LITTLE_MEMORY = {
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Has the C library give back at once what the audit frees. With an arena for each thread, the audit takes 100 MB more; with what the allocators
would keep, another 30 MB."""
BREAK_PAGE_PORT = 9467
"""The port of the page of `streamgauge break --page`, if no other program uses it."""
FAULTS = ("--late", "0.02", "--too-late", "0.002", "--duplicates", "0.01", "--corrupt", "0.002")


@dataclass
class Child:
    """A `streamgauge` command as a part of the demo. environment: variables to add to the demo's own.

    command: its arguments. does: what the demo prints when it is ready. writes, listens_at: the topics, or the host and port, by which the demo
    sees that it is ready; without either, it is ready when it runs.
    starts: when. A command that waits for Kafka by itself can start with it; one that starts after the first result row does not delay that row.
    """

    name: str
    command: Sequence[str]
    does: str
    logs: Path
    figures: LiveFigures
    environment: Mapping[str, str] = field(default_factory=dict)
    writes: Sequence[str] = ()
    starts: Start = "after Kafka"
    listens_at: tuple[str, int] | None = None
    process: GuardedProcess | None = None

    @property
    def log(self) -> Path:
        return self.logs / f"{self.name}.out"

    @property
    def last_log(self) -> Path:
        return self.log

    def check(self) -> None:
        """Raises StreamgaugeError when another program uses its port."""
        if self.listens_at is not None:
            refuse_a_taken_port(*self.listens_at, "choose another port with STREAMGAUGE_DASHBOARD_PORT")

    def start(self) -> None:
        self.check()
        command = [*COMMAND, *self.command]
        self.process = GuardedProcess.start(command, log=self.log, environment=self.environment, grace_seconds=STOP_SECONDS)

    def ask_to_stop(self) -> None:
        """Requests a stop without waiting."""
        if self.process is not None:
            self.process.ask_to_stop()

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process; None while it runs."""
        return None if self.process is None else self.process.exit_code

    def measure(self) -> int:
        """The number of records in its topics. Without topics, whether it listens, or runs."""
        if self.listens_at is not None:
            return accepts_connections(*self.listens_at)
        if not self.writes:
            return self.process is not None and self.exit_code is None
        return sum(self.figures.ends[topic] for topic in self.writes)


def children(
    settings: Settings,
    figures: LiveFigures,
    domains: Sequence[Domain] = DOMAINS,
    *,
    dashboard: bool,
    audit: bool = True,
    break_page: bool = False,
    rate: float | None = None,
) -> list[Child]:
    """The pipeline, a producer for each of `domains` with a few faults of each kind, the audit, `notify` if alerts have an address, and the pages.

    rate: events per second of each producer; None: those of the domain.
    """
    # On a small machine, queries that run back to back would leave no CPU for the dashboard.
    pause = {"STREAMGAUGE_TRIGGER_SECONDS": str(settings.trigger_seconds or TRIGGER_SECONDS)}
    # The demo may have chosen other ports than the environment names.
    base = settings.environment()
    child = partial(Child, logs=settings.logs, figures=figures)
    chosen = [child(PIPELINE, ["run"], "writes results", environment=base | pause, writes=RESULTS, starts="with Kafka")]
    for domain in domains:
        command, topics = ["produce", domain.name, *_paced(domain, rate), *FAULTS], [topic.name for topic in domain.sources]
        chosen.append(child(f"produce-{domain.name}", command, "sends events", environment=base | WITHOUT_SECRETS, writes=topics))
    if audit:
        small, topics = base | LITTLE_MEMORY, [VERDICTS.name]
        chosen.append(child("audit", ["audit"], "verifies every table", environment=small, writes=topics, starts="after the first row"))
    if settings.alert_webhook_url:
        no_database = base | {"STREAMGAUGE_DATABASE_URL": ""}
        chosen.append(child("notify", ["notify"], "sends alerts on results", environment=no_database, starts="after the first row"))
    if dashboard:
        address = settings.dashboard_host, settings.dashboard_port
        chosen.append(child(DASHBOARD, ["dashboard"], dashboard_url(settings), environment=base | WITHOUT_SECRETS, listens_at=address))
    if break_page:
        port = next_free(BREAK_PAGE_PORT, HOST) or BREAK_PAGE_PORT
        command = ["break", "--page", str(port)]
        chosen.append(child("break-page", command, f"http://{HOST}:{port}", environment=base | WITHOUT_SECRETS, listens_at=(HOST, port)))
    return chosen


def _paced(domain: Domain, rate: float | None) -> Sequence[str]:
    """The options of a domain's producer, with another rate. Trips are paced by --speed-up or by --rate; other producers take both. Live edits ignore it."""
    if rate is None:
        return domain.demo
    options = list(domain.demo)
    if domain is taxi.DOMAIN:
        at = options.index("--speed-up")
        del options[at : at + 2]
    return [*options, "--rate", str(rate)]
