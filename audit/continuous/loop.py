"""The continuous audit: checks each result again and again, reports what it finds, and takes only a small part of a core.

Recounting all records each time, as `verify` does, costs more the longer the history is, and so does a recount of the last hours when windows are
long. So each check reads only new records, and counts only what they can still change. A final row is compared once, and again when its topic gets
a record with its key. What cannot be checked that way (tables of ingested topics and of the database, files as sources) is verified as a whole, and
less often the longer that takes.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import duckdb

from audit.catalog import Audited, audited, placed, places_in
from audit.checks.check import IncrementalCheck, name_of
from audit.continuous.alerts import alert, alerted, summary
from audit.continuous.store import MEMORY_LIMIT, StoreFile
from audit.verdicts.verdict import Verdict, merged
from audit.verdicts.verdict_topic import write_verdicts
from audit.verification import CHECKS, verify
from contract.checkpoints.contents import FILES, Checkpoint
from contract.checkpoints.names import CheckpointPlace
from infrastructure.errors import StreamgaugeError, Unavailable
from infrastructure.kafka.errors import TopicMissing
from infrastructure.process.locks import InUse
from infrastructure.process.stop_signals import StopRequest
from infrastructure.process.waiting import Say
from infrastructure.settings import Settings
from infrastructure.web.webhook import Webhook

CORES = 0.08
"""The part of a core that all checks together may take."""
ROUND_SECONDS = 10
"""A result is checked no more often than this. Verdicts are written this often."""
RECHECK_SECONDS = 3
"""A wrong result is reported when a second check finds it wrong, too: before the first, Kafka may have compacted away a record because of a newer one."""
RETRY_SECONDS = 2
"""How often an audit tries to start while another one runs."""


@dataclass
class Result:
    """A result with the verdict of its last check.

    check: makes the next one; None before the first. due: when that is, by the clock of the audit. cpu_seconds: of the last check.
    """

    audited: Audited
    place: CheckpointPlace
    check: Callable[[], Verdict] | None = None
    due: float = 0
    cpu_seconds: float = 0
    verdict: Verdict | None = None
    checked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_in_doubt: bool = False

    @property
    def query(self) -> str:
        return self.audited.query

    @property
    def sink(self) -> str:
        return self.audited.sink

    @property
    def name(self) -> str:
        return name_of(self.place, self.sink)


def start_when_alone(settings: Settings, say: Say, stop: StopRequest) -> "Audit | None":
    """Starts the audit as soon as no other one runs in the same STREAMGAUGE_HOME. Says once that it waits. None if it is stopped before."""
    has_said = False
    while True:
        try:
            return Audit(settings, say)
        except InUse as error:
            if not has_said:
                say(f"waiting: {error}")
            has_said = True
        if stop.wait(RETRY_SECONDS):
            return None


class Audit:
    """Checks all results of this STREAMGAUGE_HOME. say: called with a line for each change."""

    def __init__(self, settings: Settings, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._say, self._clock = settings, say, clock
        self._store = StoreFile(settings)
        self._webhook = Webhook(settings.alert_webhook_url, say)
        self._results: dict[tuple[str, str], Result] = {}
        self._round_due = 0.0
        self._errors: dict[str, str] = {}
        self._last_verdicts: dict[str, str] = {}
        self._alerted: set[str] | None = None  # not read yet

    def close(self) -> None:
        """Sends the last alerts, and closes the file and the consumer."""
        self._webhook.close()
        self._store.close()

    def step(self) -> bool:
        """Checks one of the results that are due, and returns whether others are: a first check can take long, and a stop need not wait for all.

        While Kafka does not answer, or a topic does not exist yet, it says so once, and waits.
        """
        if self._clock() >= self._round_due:
            self._round_due = self._clock() + ROUND_SECONDS
            with self._waiting("results"):
                self._find_results()
            with self._waiting("verdicts"):
                self._publish()
        due = sorted((result for result in self._results.values() if self._clock() >= result.due), key=lambda result: result.due)
        if due:
            with self._waiting(due[0].name):
                self._check(due[0])
        return len(due) > 1

    @contextmanager
    def _waiting(self, name: str) -> Iterator[None]:
        """Reports an error that may pass, once for all that have it. name: of what is done."""
        try:
            yield
        except StreamgaugeError as error:
            what = error.server if isinstance(error, Unavailable) else str(error)
            if what not in self._errors.values():
                self._say(f"waiting: {error}")
            self._errors[name] = what
            if isinstance(error, Unavailable):
                for result in self._results.values():
                    result.due = max(result.due, self._clock() + ROUND_SECONDS)
        else:
            self._errors.pop(name, None)

    @property
    def line(self) -> str:
        """The state of all results, and its age."""
        checked = [(result, result.verdict.verdict) for result in self._results.values() if result.verdict]
        if not checked:
            return "nothing is verified yet"
        seconds = (datetime.now(UTC) - min(result.checked_at for result, _ in checked)).total_seconds()
        wrong = {result.query for result, verdict in checked if verdict != "right"}
        listed = ", ".join(f"{result.query} {verdict}" for result, verdict in checked if result.query in wrong)
        return f"{listed or f'right: {len(checked)} results'}, {seconds:.0f} s ago"

    def _find_results(self) -> None:
        """Adds the results of queries that have begun, and drops those whose checkpoint is gone or no longer in use."""
        places, in_use = places_in(self._settings), set()
        for result in audited(self._settings):
            if (found := placed(result, places, self._settings)) is None:
                continue
            name, (audited_result, place) = (result.query, result.sink), found
            in_use.add(name)
            if name not in self._results or self._results[name].place != place:
                self._results[name] = Result(audited_result, place)
            self._results[name].audited = audited_result  # an ingested table may have got columns
        self._results = {name: result for name, result in self._results.items() if name in in_use}

    def _verdict(self, result: Result) -> Verdict:
        with self._store.transaction():
            result.check = result.check or self._check_of(result)
            return result.check()

    def _check_of(self, result: Result) -> Callable[[], Verdict]:
        """How a result is checked. Raises StreamgaugeError if its checkpoint is damaged."""
        check = None if _reads_files(result.place) else CHECKS[type(result.audited)](result.audited, result.place, self._store)
        if isinstance(check, IncrementalCheck):
            return check.recheck
        return lambda: verify([(result.audited, result.place)], self._settings)[0]

    def _check(self, result: Result) -> None:
        began, checked_at = time.process_time(), datetime.now(UTC)
        result.due = self._clock() + ROUND_SECONDS
        try:
            verdict = self._verdict(result)
        except (Unavailable, TopicMissing):
            raise
        except Exception as error:  # one result must not end the audit of the others
            result.check = None  # what it keeps in memory is of a check that is undone
            verdict = Verdict(result.query, result.sink, problem=_why_not_checked(error, result.query))
        is_first = result.verdict is None  # it reads what the others need not
        result.cpu_seconds = 0 if is_first else time.process_time() - began
        pause_seconds = pause_after(result.cpu_seconds, (other.cpu_seconds for other in self._results.values()))
        result.due = self._clock() + max(ROUND_SECONDS, pause_seconds)
        before = "right" if result.verdict is None else result.verdict.verdict
        if verdict.verdict not in {"right", before} and not result.is_in_doubt:
            result.is_in_doubt, result.due = True, self._clock() + RECHECK_SECONDS
            return
        result.is_in_doubt, result.verdict, result.checked_at = False, verdict, checked_at

    def _publish(self) -> None:
        """Writes the verdicts, and an alert for each query that has become wrong, or right again."""
        verdicts = {query: merged(of_query) for query, of_query in self._by_query()}
        if not verdicts:
            return
        write_verdicts(self._settings, [*verdicts.values()], {query: self._checked_at(query) for query in verdicts})
        if self._alerted is None:
            self._alerted = alerted(self._settings, self._store.records)
        for query, verdict in verdicts.items():
            if self._last_verdicts.get(query) != verdict.verdict:
                self._say(f"{query}: {verdict.verdict}{f': {what}' if (what := summary(verdict)) else ''}")
                self._last_verdicts[query] = verdict.verdict
            if verdict.verdict != "not checked" and (verdict.verdict == "wrong") != (query in self._alerted):
                alert(self._settings, verdict, self._webhook)
                self._alerted ^= {query}

    def _by_query(self) -> Iterator[tuple[str, list[Verdict]]]:
        """The queries of which all results have been checked, with their verdicts."""
        for query in dict.fromkeys(result.query for result in self._results.values()):
            verdicts = [result.verdict for result in self._results.values() if result.query == query]
            if (known := [verdict for verdict in verdicts if verdict is not None]) and len(known) == len(verdicts):
                yield query, known

    def _checked_at(self, query: str) -> datetime:
        return min(result.checked_at for result in self._results.values() if result.query == query)


def pause_after(cpu_seconds: float, cpu_seconds_of_all: Iterable[float]) -> float:
    """The seconds until the next check of a result, so that all checks take CORES, and their average age is the least possible.

    cpu_seconds: of the last check of the result. cpu_seconds_of_all: of the last check of each result.
    """
    return math.sqrt(cpu_seconds) * sum(map(math.sqrt, cpu_seconds_of_all)) / CORES


def _why_not_checked(error: Exception, query: str) -> str:
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"it takes more than {MEMORY_LIMIT}; run `streamgauge verify {query}`"
    text = str(error).partition("\n")[0]
    return (
        text if isinstance(error, StreamgaugeError | OSError | duckdb.Error) else f"a fault of Streamgauge: {type(error).__name__}: {text}"
    )


def _reads_files(place: CheckpointPlace) -> bool:
    checkpoint = Checkpoint(place.folder)
    batch = checkpoint.batch(planned[-1]) if (planned := checkpoint.planned) else None
    return batch is not None and FILES in batch.ends
