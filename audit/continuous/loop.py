"""The continuous audit: looks at each result again and again, tells what is found, and takes no more than its part of a core.

Recounting all records each time, as `verify` does, costs more the longer the history is, and so does a recount of the last hours when windows are
long. So each look reads only new records, and counts only what they can still change; what is final is compared once, and again when its topic gets
a record of it. What cannot be checked that way (tables of ingested topics and of the database, files as sources) is verified as a whole, and the
longer that takes, the less often.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

import duckdb

from audit.catalog import Audited, audited, placed, places_in
from audit.checks.check import Watch, name_of
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
from infrastructure.process.waiting import Say
from infrastructure.settings import Settings
from infrastructure.web.webhook import Webhook

CORES = 0.08
"""The part of a core that all looks may take."""
ROUND_SECONDS = 10
"""A result is looked at no more often, and the verdicts are written so often."""
AGAIN_SECONDS = 3
"""What is not right is told when it is so at two looks: at one, Kafka may have compacted away a record because of a newer one."""
ALONE_SECONDS = 2
"""How often an audit that waits for another one to end tries to begin."""


@dataclass
class Result:
    """A result, and when it is looked at next. at: of the last look. spent: the CPU seconds that it took."""

    query: str
    sink: str
    place: CheckpointPlace
    look: Callable[[], Verdict]
    due: float = 0
    spent: float = 0
    verdict: Verdict | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_in_doubt: bool = False

    @property
    def name(self) -> str:
        return name_of(self.place, self.sink)


def begun_when_alone(settings: Settings, say: Say, stop: Event) -> "Audit | None":
    """The audit, as soon as no other one runs in the same STREAMGAUGE_HOME, of which it tells once. None if it is to stop before."""
    is_told = False
    while True:
        try:
            return Audit(settings, say)
        except InUse as error:
            if not is_told:
                say(f"waiting: {error}")
            is_told = True
        if stop.wait(ALONE_SECONDS):
            return None


class Audit:
    """All results that are there. say: called with a line for each change."""

    def __init__(self, settings: Settings, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._say, self._clock = settings, say, clock
        self._store = StoreFile(settings)
        self._webhook = Webhook(settings.alert_webhook_url, say)
        self._results: dict[tuple[str, str], Result] = {}
        self._round_due = 0.0
        self._troubles: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._alerted: set[str] | None = None  # not read yet

    def close(self) -> None:
        """Closes the file, in which is what was found, and the consumer, and sends the last alerts."""
        self._webhook.close()
        self._store.close()

    def step(self) -> bool:
        """Looks at one of the results that are due, and returns whether others are: a first look can take long, and a stop need not wait for all.

        A Kafka that does not answer, and a topic that is not there yet, are told once, and waited for.
        """
        if self._clock() >= self._round_due:
            self._round_due = self._clock() + ROUND_SECONDS
            with self._waiting("verdicts"):
                self._find()
                self._tell()
        due = sorted((one for one in self._results.values() if self._clock() >= one.due), key=lambda one: one.due)
        if due:
            with self._waiting(due[0].name):
                self._look(due[0])
        return len(due) > 1

    @contextmanager
    def _waiting(self, name: str) -> Iterator[None]:
        """Tells an error that may pass, once for all that have it. name: of what is done."""
        try:
            yield
        except StreamgaugeError as error:
            what = error.server if isinstance(error, Unavailable) else str(error)
            if what not in self._troubles.values():
                self._say(f"waiting: {error}")
            self._troubles[name] = what
            if isinstance(error, Unavailable):
                for one in self._results.values():
                    one.due = max(one.due, self._clock() + ROUND_SECONDS)
        else:
            self._troubles.pop(name, None)

    @property
    def line(self) -> str:
        """How right the results are, and as of when."""
        known = [one for one in self._results.values() if one.verdict]
        if not known:
            return "nothing is verified yet"
        wrong = sorted({one.query for one in known if one.verdict and one.verdict.verdict != "right"})
        seconds = (datetime.now(UTC) - min(one.at for one in known)).total_seconds()
        what = ", ".join(f"{one.query} {one.verdict.verdict}" for one in known if one.verdict and one.query in wrong)
        return f"{what or f'right: {len(known)} results'}, {seconds:.0f} s ago"

    def _find(self) -> None:
        """Adds the results of queries that have begun, and drops those of which the checkpoint is gone, or another one is in use."""
        places, there = places_in(self._settings), {}
        for one in audited(self._settings):
            if (result := placed(one, places, self._settings)) is None:
                continue
            known = self._results.get((one.query, one.sink))
            there[one.query, one.sink] = known if known is not None and known.place == result[1] else self._result(*result)
        self._results = there

    def _result(self, one: Audited, place: CheckpointPlace) -> Result:
        found = Result(one.query, one.sink, place, lambda: verify([(one, place)], self._settings)[0])
        if not _reads_files(place) and isinstance(check := CHECKS[type(one)](one, place, self._store), Watch):
            found.look = check.look
        return found

    def _look(self, one: Result) -> None:
        began, at = time.process_time(), datetime.now(UTC)
        one.due = self._clock() + ROUND_SECONDS
        try:
            with self._store.transaction():
                verdict = one.look()
        except (Unavailable, TopicMissing):
            raise
        except duckdb.OutOfMemoryException:
            verdict = Verdict(one.query, one.sink, problem=f"it takes more than {MEMORY_LIMIT}; run `streamgauge verify {one.query}`")
        except (StreamgaugeError, OSError, duckdb.Error) as error:  # one result must not end the audit of the others
            verdict = Verdict(one.query, one.sink, problem=str(error).partition("\n")[0])
        one.spent = 0 if one.verdict is None else time.process_time() - began  # the first look reads what the others need not
        one.due = self._clock() + max(ROUND_SECONDS, pause_after(one.spent, (other.spent for other in self._results.values())))
        before = "right" if one.verdict is None else one.verdict.verdict
        if verdict.verdict not in {"right", before} and not one.is_in_doubt:
            one.is_in_doubt, one.due = True, self._clock() + AGAIN_SECONDS
            return
        one.is_in_doubt, one.verdict, one.at = False, verdict, at

    def _tell(self) -> None:
        """Writes the verdicts, and an alert for each query that has become wrong, or right again."""
        verdicts = {query: merged(found) for query, found in self._by_query()}
        if not verdicts:
            return
        write_verdicts(self._settings, [*verdicts.values()], {query: self._at(query) for query in verdicts})
        if self._alerted is None:
            self._alerted = alerted(self._settings, self._store.records)
        for query, verdict in verdicts.items():
            if self._words.get(query) != verdict.verdict:
                self._say(f"{query}: {verdict.verdict}{f': {what}' if (what := summary(verdict)) else ''}")
                self._words[query] = verdict.verdict
            if verdict.verdict != "not checked" and (verdict.verdict == "wrong") != (query in self._alerted):
                alert(self._settings, verdict, self._webhook)
                self._alerted ^= {query}

    def _by_query(self) -> Iterator[tuple[str, list[Verdict]]]:
        for query in dict.fromkeys(one.query for one in self._results.values()):
            found = [one.verdict for one in self._results.values() if one.query == query]
            if (whole := [verdict for verdict in found if verdict is not None]) and len(whole) == len(found):
                yield query, whole

    def _at(self, query: str) -> datetime:
        return min(one.at for one in self._results.values() if one.query == query)


def pause_after(spent: float, spent_of_all: Iterable[float]) -> float:
    """The seconds until the next look at a result: all looks take CORES then, and the results are as new as they can be on average.

    spent: the CPU seconds that its look took. spent_of_all: those of the last look at each result.
    """
    return math.sqrt(spent) * sum(map(math.sqrt, spent_of_all)) / CORES


def _reads_files(place: CheckpointPlace) -> bool:
    checkpoint = Checkpoint(place.folder)
    batch = checkpoint.batch(planned[-1]) if (planned := checkpoint.planned) else None
    return batch is not None and FILES in batch.ends
