"""The life of a query in this process: it is started, runs and ends; when it fails it is restarted or given up.

        its time has come             nothing left to do, or a stop
    DUE ───────────────────> RUNNING ──────────────────────────────> ENDED
     ^                          │
     │ after a while            │ fails
     │                          v
     └──────── yes ── can a restart help? ── no, or too often ─────> GIVEN_UP

A start may fail too, and leads where a failed run leads. A query is WAITING instead of DUE when a server that it needs does not answer, which
counts as no failure.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from py4j.protocol import Py4JJavaError

from contract.errors import StreamgaugeError
from contract.kafka.errors import KafkaAway, TopicMissing
from contract.registry.client import RegistryAway
from contract.settings import Settings
from contract.storage.paths import StoreAway
from pipeline.checkpoint.use import CheckpointUse
from pipeline.formats.confluent_avro import unknown_ids
from pipeline.monitoring.alerts import Alerts
from pipeline.monitoring.measures import Failure, failure_of
from pipeline.monitoring.progress import ProgressToKafka
from pipeline.query import Query
from pipeline.running.failures import Remedy, diagnosis
from pipeline.running.run import Run, Starter
from pipeline.running.supervisor import RestartPolicy

KAFKA, REGISTRY, STORE = "Kafka", "the schema registry", "the object store"
RETRY_SECONDS = 2
ONCE_SECONDS = 30
"""How long a run with --once waits for a server that does not answer; one that goes on waits as long as it takes."""


class State(Enum):
    """Where a query stands in its life."""

    DUE = "is to be started when its time has come"
    WAITING = "is to be started when a server answers that it needs"
    RUNNING = "has a run under way"
    ENDED = "has ended without a failure"
    GIVEN_UP = "has failed, and is not restarted"


@dataclass(frozen=True)
class Surroundings:
    """What the queries of a process share.

    call: has a function called in the thread that all of them live in. away_since: the servers that do not answer, each with since when.
    """

    settings: Settings
    starter: Starter
    alerts: Alerts
    progress: ProgressToKafka
    say: Callable[[str], None]
    call: Callable[[Callable[[], None]], None]
    once: bool = False
    clock: Callable[[], float] = time.monotonic
    away_since: dict[str, float] = field(default_factory=dict)


class QueryLife:
    """One query, which lives in one thread.

    state: where it stands. due: when it is to be started, on the clock; infinite unless it is DUE or WAITING. failure: why it was given up.
    """

    def __init__(self, query: Query, around: Surroundings) -> None:
        self.query, self.state, self.due, self.failure = query, State.DUE, -math.inf, ""
        self._around = around
        self._restarts = RestartPolicy(around.settings.restart_limit, around.settings.restart_seconds, clock=around.clock)
        self._run: Run | None = None
        self._unknown_ids: frozenset[int] = frozenset()
        self._stops_after = math.inf

    @property
    def name(self) -> str:
        """The query's."""
        return self.query.name

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state in {State.ENDED, State.GIVEN_UP}

    @property
    def is_starting(self) -> bool:
        """Whether it runs, and has neither done a batch yet nor found that there is nothing to do."""
        return self._run is not None and self.state is State.RUNNING and not self._run.has_begun

    def start(self) -> None:
        """Starts a run. Raises only when Spark's JVM has ended: whatever else a start fails with, it is no failure of the other queries."""
        try:
            run = self._around.starter.start(self.query, self._unknown_ids)
        except (KafkaAway, RegistryAway, StoreAway) as away:
            self._wait(away)
        except TopicMissing as missing:  # it may be created yet
            self._restart(Failure(str(missing), ""))
        except StreamgaugeError as error:
            self._give_up(Failure(str(error), ""))
        except Exception as error:
            if not self._around.starter.is_alive:
                raise
            failure = failure_of(str(error.java_exception) if isinstance(error, Py4JJavaError) else f"{type(error).__name__}: {error}")
            self._give_up(Failure(f"it cannot be started: {failure.error}", failure.detail))
        else:
            self.state, self.due, self._run, self._unknown_ids = State.RUNNING, math.inf, run, frozenset()
            for server in (KAFKA, STORE, *([REGISTRY] if self.query.subject else [])):
                self._around.away_since.pop(server, None)
            self._around.say(f"{self.name} runs")
            run.call_at_end(lambda: self._around.call(self.end))

    def heard(self, progress: dict[str, Any] | None) -> None:
        """Takes in what Spark has told of its run: the progress of a batch, or None: there is nothing to do."""
        if self._run is not None:
            self._run.heard(progress)
            if progress is not None and progress["batchId"] >= self._stops_after:
                self.stop()

    def end(self) -> None:
        """Takes in that its run has ended: by itself, or by a failure, after which it is restarted or given up."""
        if self._run is None or self.state is not State.RUNNING:  # it was stopped
            return
        text = self._run.failure
        if text is None or self._stops_after < math.inf:
            self.state = State.ENDED
        elif ids := unknown_ids(text):
            self._around.say(f"{self.name} met an unknown schema (id {min(ids)}): it asks the registry and restarts from its checkpoint")
            self._unknown_ids = frozenset(ids | self._around.starter.schema_ids_ahead(self.query, self._run))
            self._be_due()
        else:
            self._fail(text)

    def finish(self) -> None:
        """Has its run stopped when the batch under way is done, or now if there is none."""
        if self._run is None or self.state is not State.RUNNING:
            return
        done = self._run.last_batch
        if self._run.is_in_batch:
            self._stops_after = done + 1
        else:
            self.stop()

    def stop(self) -> None:
        """Stops its run now."""
        if self._run is not None and self.state is State.RUNNING:
            self.state = State.ENDED
            if not self._run.stop():
                self._around.say(f"{self.name} did not stop in time and was cut off; its next start resumes from its checkpoint")

    def _fail(self, text: str) -> None:
        """Does what helps after the failure that Spark tells as `text`."""
        found = diagnosis(text, CheckpointUse.of(self.query, self._around.settings), self._around.settings)
        failure = Failure(found.what, failure_of(text).detail)
        match found.remedy:
            case Remedy.RESTART_AT_ONCE:
                self._around.say(f"{self.name} restarts from its checkpoint: {found.what}")
                self._be_due()
            case Remedy.PERSON:
                self._give_up(failure)
            case Remedy.RESTART:
                try:
                    self._around.starter.ask_servers(self.query)
                except (KafkaAway, StoreAway) as away:  # that is why it has failed
                    self._wait(away)
                except StreamgaugeError:  # the restart will say so
                    self._restart(failure)
                else:
                    self._restart(failure)

    def _be_due(self, seconds: float = 0, state: State = State.DUE) -> None:
        self.state, self.due = state, self._around.clock() + seconds

    def _restart(self, failure: Failure) -> None:
        """Restarts it after a while, or gives it up when it has failed too often."""
        seconds = self._restarts.seconds_until_restart()
        if seconds is None:
            limits = f"failed {self._restarts.limit + 1} times within {self._restarts.within_seconds:.0f} s"
            log = self._around.settings.logs / "spark.log"
            self._give_up(Failure(f"{limits}: {failure.error} (details are in {log})", failure.detail))
            return
        self._around.say(f"{self.name} restarts from its checkpoint in {seconds:.0f} s: {failure.error}")
        self._around.alerts.send("warning", self.name, f"failed and restarts: {failure.error}", failure.detail)
        self._be_due(seconds)

    def _wait(self, away: KafkaAway | RegistryAway | StoreAway) -> None:
        """Tries again in a moment; with --once, only for so long."""
        server = REGISTRY if isinstance(away, RegistryAway) else STORE if isinstance(away, StoreAway) else KAFKA
        now, since = self._around.clock(), self._around.away_since
        if server not in since:
            since[server] = now
            self._around.alerts.send("warning", self.name, f"waits for {server}, and others may: {away}")
        if self.state is not State.WAITING:
            self._around.say(f"{self.name} waits for {server} and tries again every {RETRY_SECONDS} s: {away}")
        if self._around.once and now - since[server] > ONCE_SECONDS:
            self._give_up(Failure(str(away), ""))
        else:
            self._be_due(RETRY_SECONDS, State.WAITING)

    def _give_up(self, failure: Failure) -> None:
        self.state, self.due, self.failure = State.GIVEN_UP, math.inf, failure.error
        self._around.say(f"{self.name} is given up: {failure.error}")
        self._around.alerts.send("error", self.name, f"given up: {failure.error}", failure.detail)
        self._around.progress.given_up(self.name, Failure(failure.error, failure.detail or failure.error))
