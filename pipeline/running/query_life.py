"""The life cycle of a query in this process: start, run, restart after a failure, end.

        its time has come             nothing left to do, or a stop
    DUE ───────────────────> RUNNING ──────────────────────────────> ENDED
     ^                          │
     │ after a delay            │ fails
     │                          v
     └──────── yes ── can a restart help? ── no, or too often ─────> GIVEN_UP

Every restart resumes from the query's checkpoint. `failures.diagnosis` decides whether a restart can help:

- RESTART: the query restarts after 1, 2, 4 ... seconds. It is given up when STREAMGAUGE_RESTART_LIMIT restarts did not help.
- RESTART_AT_ONCE: the query restarts without delay and without limit. After ALERT_RESTARTS that did not help, with an alert and a delay.
- PERSON: the query is given up at once.

A restart helped if the run completes a batch or finds that there is nothing to do. Then all counts begin anew.

An Avro schema id that the query does not know is fetched from the registry, and the query restarts at once. It also restarts when the
registry has a schema that it lacked before.

A query is WAITING instead of DUE while Kafka, the schema registry, the object store or the database cannot be reached, and while its result
topic would refuse its batches. It retries every RETRY_SECONDS and recovers automatically. With --once, it is given up after ONCE_SECONDS. Waiting does not count as a failure.

A start that fails is a failure like any other, except that a StreamgaugeError, which says what a person has to do, gives the query up.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError

from contract.checkpoints.contents import Partition
from infrastructure.errors import StreamgaugeError, Unavailable
from infrastructure.kafka.errors import BatchesRefused, KafkaUnavailable, TopicMissing
from infrastructure.settings import Settings
from pipeline.formats.confluent_avro import unknown_ids
from pipeline.monitoring.alerts import Alerts
from pipeline.monitoring.failures import Failure, Remedy, diagnosis, failure_of, hides_its_cause
from pipeline.monitoring.progress import ProgressToKafka
from pipeline.query import Query
from pipeline.running.run import Run, SchemaAwaited, Starter

RETRY_SECONDS = 2
ALERT_RESTARTS = 4
MAX_DELAY_SECONDS = 60
TOPICS_SECONDS = 600
"""How long after Kafka became unreachable a missing topic is waited for, because it may still be created."""
ONCE_SECONDS = 30
"""How long a run with --once waits for a server that cannot be reached. A continuous run waits indefinitely."""


class State(Enum):
    """The state of a query in its life cycle."""

    DUE = "is to be started when its time has come"
    WAITING = "is to be started when a server answers that it needs, or has a schema, or its result topic takes batches"
    RUNNING = "has a run under way"
    ENDED = "has ended without a failure"
    GIVEN_UP = "has failed, and is not restarted"


@dataclass(frozen=True)
class RunContext:
    """The objects that the queries of a process share.

    call: runs a function in the thread of the queries. unavailable_since: when each unreachable server became so.
    """

    settings: Settings
    starter: Starter
    alerts: Alerts
    progress: ProgressToKafka
    say: Callable[[str], None]
    call: Callable[[Callable[[], None]], None]
    once: bool = False
    clock: Callable[[], float] = time.monotonic
    unavailable_since: dict[type[Unavailable], float] = field(default_factory=dict)


class QueryLife:
    """The life of one query. Its methods run one after another, nearly all in one thread.

    state: its current state. due: when to start it, on the clock; infinite unless it is DUE or WAITING. failure: why it was given up.
    """

    def __init__(self, query: Query, context: RunContext) -> None:
        self.query, self.state, self.due, self.failure = query, State.DUE, -math.inf, ""
        self._context = context
        self._restarts: Counter[Remedy] = Counter()
        self._has_warned = False
        self._run: Run | None = None
        self._unknown_ids: list[int] = []
        self._stops_after = math.inf
        self._has_caught_up = False
        self._waits_for: type[Unavailable] | None = None

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def is_over(self) -> bool:
        """Whether the query has ended or was given up."""
        return self.state in {State.ENDED, State.GIVEN_UP}

    @property
    def is_starting(self) -> bool:
        """Whether the query is running but catches up, or has neither completed a batch nor found that there is nothing to do.

        In real-time mode, results come long before the first batch is complete.
        """
        if self._run is None or self.state is not State.RUNNING:
            return False
        return self._run.catches_up or not (self._run.has_begun or self.query.real_time)

    def start(self) -> None:
        """Starts a run. Raises only when Spark's JVM has ended; any other error affects this query alone."""
        try:
            run = self._context.starter.start(self.query, self._unknown_ids, has_caught_up=self._has_caught_up)
        except Unavailable as error:
            self._wait(error)
        except TopicMissing as missing:
            if self._context.clock() - self._context.unavailable_since.get(KafkaUnavailable, -math.inf) < TOPICS_SECONDS:
                self._wait(KafkaUnavailable(str(missing)))  # topics are created a moment after the broker starts
            else:
                self._restart(Failure(str(missing), ""))
        except SchemaAwaited as awaited:
            if self.state is not State.WAITING:
                self._context.say(f"{self.name} waits for a schema: {awaited}")
            self._be_due(RETRY_SECONDS, State.WAITING)
        except StreamgaugeError as error:
            self._give_up(Failure(str(error), ""))
        except Exception as error:
            if not self._context.starter.is_alive:
                raise
            text = str(error.java_exception) if isinstance(error, Py4JJavaError) else f"{type(error).__name__}: {error}"
            self._fail(text.partition("\n")[0], text)  # a plan may follow, with the names of all its options
        else:
            self.state, self.due, self._run, self._unknown_ids = State.RUNNING, math.inf, run, []
            self._context.unavailable_since.clear()  # a query that still waits for another server says so again
            self._has_caught_up = False  # the next start follows a run that may have ended anywhere
            self._context.say(f"{self.name} {'catches up' if run.catches_up else 'runs'}")
            run.call_at_end(lambda: self._context.call(lambda: self.end(run)))

    def on_progress(self, progress: dict[str, Any] | None) -> None:
        """Handles Spark's report: the progress of a batch, or None when there is nothing to do."""
        if self._run is not None:
            self._run.on_progress(progress)
            if self.state is State.RUNNING:
                self._restarts.clear()
                if self._has_warned:
                    self._has_warned = False
                    self._context.alerts.send("resolved", self.name, "runs again")
            if progress is not None and progress["batchId"] >= self._stops_after:
                self.stop()
            elif (
                self.state is State.RUNNING
                and self._stops_after == math.inf
                and self._context.starter.has_new_schemas(self.query, self._run)
            ):
                self._context.say(f"{self.name} restarts from its checkpoint: the registry has schemas that it lacked")
                self.stop()
                self._be_due()

    def end(self, run: Run) -> None:
        """Handles the end of a run. After a failure, the query is restarted or given up."""
        if run is not self._run or self.state is not State.RUNNING:  # the run was stopped
            return
        text = run.failure
        if text is None and run.catches_up:
            self._has_caught_up = True
            self._be_due()
        elif text is None or self._stops_after < math.inf:
            self.state = State.ENDED
        elif ids := self._ids_of_new_schemas(run, text):
            self._context.say(f"{self.name} met an unknown schema (id {min(ids)}): it asks the registry and restarts from its checkpoint")
            self._unknown_ids = ids
            self._context.progress.waiting(self.name)
            self._be_due()
        else:
            self._fail(text, text)

    def _ids_of_new_schemas(self, run: Run, text: str) -> list[int]:
        """The ids of the schemas for want of which a run failed, the most important first; empty if it failed for another reason."""
        named = unknown_ids(text)
        if not named:
            if not hides_its_cause(text):
                return []
            try:
                self._context.starter.ask_servers(self.query)
            except (StreamgaugeError, OSError):  # that explains the failure
                return []
        return self._context.starter.new_schema_ids(self.query, run, named)

    def finish(self) -> None:
        """Stops the run after the current batch, or now if there is none. A batch in real-time mode would be followed by another at once."""
        if self._run is None or self.state is not State.RUNNING:
            return
        done = self._run.last_batch
        if self._run.is_in_batch and (self._context.once or not self.query.real_time):
            self._stops_after = done + 1
        else:
            self.stop()

    def stop(self) -> None:
        if self._run is not None and self.state is State.RUNNING:
            self.state = State.ENDED
            if not self._run.stop():
                self._context.say(f"{self.name} did not stop in time and was cut off; its next start resumes from its checkpoint")

    def follow(self, partitions: Collection[Partition]) -> None:
        """Restarts a run that does not read all `partitions` of its source."""
        if self._run is not None and self.state is State.RUNNING and not self._run.reads(partitions):
            self._context.say(f"{self.name} restarts from its checkpoint: {self.query.source.name} has more partitions than it reads")
            self.stop()
            self._be_due()

    def abandon(self, why: StreamgaugeError) -> None:
        """Stops the run now and gives the query up."""
        if self._run is not None and self.state is State.RUNNING:
            self._give_up(Failure(str(why), ""))
            self._run.stop()

    def _unless_unavailable(self, handle: Callable[[Failure], None], failure: Failure) -> None:
        """Handles a failure, unless a server that cannot be reached explains it: then waits for the server."""
        try:
            self._context.starter.ask_servers(self.query)
        except Unavailable as error:
            self._wait(error)
            return
        except (StreamgaugeError, OSError):  # the next start reports it
            pass
        handle(failure)

    def _fail(self, reason: str, text: str) -> None:
        """Applies the remedy for a failure. reason: the part of Spark's exception `text` that tells it."""
        diagnosed = diagnosis(reason, self.query.checkpoint_name.place(self._context.settings), self._context.settings)
        failure = Failure(diagnosed.cause, failure_of(text).detail)
        if diagnosed.remedy is Remedy.PERSON:
            self._give_up(failure)
        else:
            self._unless_unavailable(partial(self._restart, remedy=diagnosed.remedy), failure)

    def _be_due(self, seconds: float = 0, state: State = State.DUE) -> None:
        self.state, self.due = state, self._context.clock() + seconds

    def _restart(self, failure: Failure, remedy: Remedy = Remedy.RESTART) -> None:
        """Restarts the query, or gives it up if restarts have not helped."""
        self._restarts[remedy] += 1
        count, settings = self._restarts[remedy], self._context.settings
        is_at_once = remedy is Remedy.RESTART_AT_ONCE
        if not is_at_once and count > settings.restart_limit:
            log = settings.logs / "spark.log"
            reason = f"failed {count} times without a batch in between: {failure.error} (details are in {log})"
            self._give_up(Failure(reason, failure.detail))
            return
        seconds = 0 if is_at_once and count < ALERT_RESTARTS else min(2 ** (count - 1), MAX_DELAY_SECONDS)
        self._context.say(f"{self.name} restarts from its checkpoint{f' in {seconds} s' if seconds else ''}: {failure.error}")
        if not is_at_once or count == ALERT_RESTARTS:
            self._has_warned = True
            self._context.alerts.send("warning", self.name, f"failed and restarts: {failure.error}", failure.detail)
        self._be_due(seconds)

    def _wait(self, error: Unavailable) -> None:
        """Retries after RETRY_SECONDS. With --once, gives up after ONCE_SECONDS."""
        now, since, kind = self._context.clock(), self._context.unavailable_since, type(error)
        is_own_topic = isinstance(error, BatchesRefused)  # no other query waits for it
        if kind not in since:
            since[kind] = now
            if not is_own_topic:
                self._context.alerts.send("warning", self.name, f"waits for {error.server}, and others may: {error}")
        if self.state is not State.WAITING or kind is not self._waits_for:
            self._context.say(f"{self.name} waits for {error.server} and tries again every {RETRY_SECONDS} s: {error}")
            if is_own_topic:
                self._has_warned = True  # `resolved` follows when it runs again
                self._context.alerts.send("warning", self.name, f"waits for {error.server}: {error}")
                self._context.progress.waiting(self.name, Failure(str(error), ""))
        self._waits_for = kind
        if self._context.once and now - since[kind] > ONCE_SECONDS:
            self._give_up(Failure(str(error), ""))
        else:
            self._be_due(RETRY_SECONDS, State.WAITING)

    def _give_up(self, failure: Failure) -> None:
        self.state, self.due, self.failure = State.GIVEN_UP, math.inf, failure.error
        self._context.say(f"{self.name} is given up: {failure.error}")
        self._context.alerts.send("error", self.name, f"given up: {failure.error}", failure.detail)
        self._context.progress.given_up(self.name, Failure(failure.error, failure.detail or failure.error))
