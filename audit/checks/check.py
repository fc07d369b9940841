"""What the checks of all results have in common, and how one goes on where its last look ended, unless what it looks at is another one now."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from audit.audited import Facts
from audit.checks.store import Store
from audit.reading.prefix import Prefix, prefix_of
from audit.time_range import TimeRange
from audit.verdicts.verdict import Verdict
from contract.checkpoints.contents import Batch, Checkpoint, Offsets, known_batches
from contract.checkpoints.names import CheckpointPlace

_AGAIN = 2
"""So many of the newest batches are read again each time: Spark may have planned them anew. One more is kept, to know that none is missing."""


@dataclass
class Progress:
    """What a check knows, beside its tables in the store.

    query_id: of the checkpoint. kept: where the records of the source began at the first look. reached: where those begin that are to be read next.
    of_topic: the same of the topic that the query writes.
    """

    query_id: str | None
    kept: Offsets
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    of_topic: dict[tuple[str, int], int] = field(default_factory=dict)


P = TypeVar("P", bound=Progress)


class Batches:
    """The batches of one query, without those that no longer matter: a long history is read once, at the start."""

    def __init__(self) -> None:
        self.known: list[Batch] = []
        self.has_forgotten = False

    def of(self, place: CheckpointPlace) -> Sequence[Batch]:
        """Those that are known, and those that were planned since the last call."""
        checkpoint, kept = Checkpoint(place.folder), self.known[:-_AGAIN]
        last = kept[-1].number if kept else -1
        later = [batch for number in checkpoint.planned if number > last and (batch := checkpoint.batch(number))]
        if kept and later and later[0].number == last + 1:
            self.known = [*kept, *later]
        else:
            self.known, self.has_forgotten = known_batches(place), False
        return self.known

    def forget(self, offsets: Offsets, committed: int) -> None:
        """Forgets the batches before the last one of which no record from these offsets on is, and neither the committed one."""
        number = max(
            (
                number
                for number, batch in enumerate(self.known)
                if batch.number <= committed and all(batch.ends.get(which, 0) <= offset for which, offset in offsets.items())
            ),
            default=0,
        )
        self.known = self.known[(first := min(number, max(len(self.known) - _AGAIN - 1, 0))) :]
        self.has_forgotten |= first > 0


class Check(ABC):
    """The check of one result. prefix, facts: the records that its query has read, and what is taken from each."""

    prefix: Prefix[Any]
    facts: Sequence[Facts]

    @abstractmethod
    def prepare(self) -> None:
        """Reads what the query has written, and tells prefix and facts. Raises StreamgaugeError for what cannot be checked."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """What is found. The facts are in the database. Raises StreamgaugeError for what cannot be checked."""

    def has_grown(self) -> bool:
        """Whether what is compared may have been replaced by something newer since, so that a wrong row may be no error."""
        return False


class Watch(Check, Generic[P]):
    """A check that can look again, and reads only what is new then. known: what it knows at the beginning of a look.

    span: only of the rows of that time. looked: when a look has ended last, None before the first.
    """

    known: P

    def __init__(self, sink: str, place: CheckpointPlace, store: Store, span: TimeRange | None) -> None:
        self.name, self.place, self.store, self.settings = name_of(place, sink), place, store, store.settings
        self._asked = span
        self.batches = Batches()
        self._last: tuple[object, Verdict] | None = None
        self.looked: datetime | None = None

    def prepare(self) -> None:
        self._proceed()
        if self._asked is not None:
            self.narrow(self._asked)
        self.read()

    def look(self) -> Verdict:
        """The verdict now, in the transaction of the caller. "right" stands if nothing has moved. Raises StreamgaugeError for what cannot be checked."""
        self._proceed()
        at = self.prefix.committed, self.prefix.known[-1:], self.prefix.seen, self.prefix.kept
        if self._last is None or self._last[0] != at or self._last[1].verdict != "right":
            self.read()
            self._load()
            self._last = at, self.verdict()
            self.keep()
        self.looked = datetime.now(UTC)
        return self._last[1]

    def narrow(self, span: TimeRange) -> None:
        """Leaves the rows of records with Kafka timestamps within the span."""
        self.prefix = self.prefix.at_times(span, self.settings.kafka)

    @abstractmethod
    def seen(self) -> Any:  # noqa: ANN401 - of each kind another
        """What is found of what the query writes, as the ends of its topic."""

    @abstractmethod
    def has_lost(self) -> bool:
        """Whether what the query writes has lost what was known of it."""

    @abstractmethod
    def begin(self, query_id: str | None) -> P:
        """Forgets everything."""

    @abstractmethod
    def read(self) -> None:
        """Reads what is new of what the query writes."""

    @abstractmethod
    def keep(self) -> None:
        """Keeps what the next look needs."""

    @property
    def ends(self) -> Offsets:
        """Where the records end that are needed."""
        return self.prefix.ends

    def _proceed(self) -> None:
        """Finds the prefix of the query, and how far it is known."""
        query_id, known = Checkpoint(self.place.folder).query_id, self.store.state(self.name)
        if known is None or known.query_id != query_id:
            known, self.batches = None, Batches()
        self.prefix = prefix_of(self.place, self.seen, self.settings, self.batches.of)
        if known is not None:
            self.known = known
            if are_lost(known.reached, self.prefix.kept) or self.has_lost():
                known, self.batches = None, Batches()
                self.prefix = prefix_of(self.place, self.seen, self.settings, self.batches.of)
        if known is None:
            self.known, self._last = self.begin(query_id), None
        self.prefix = replace(self.prefix, kept={**self.prefix.kept, **self.known.kept})

    def _load(self) -> None:
        """Adds the facts of the records that were not read."""
        reached, ends = self.known.reached, self.ends
        starts = {which: min(reached.get(which, self.prefix.starts[which]), end) for which, end in ends.items()}
        if starts != ends or not reached:
            self.store.recount.load(self.facts, self.store.records.between(starts, ends))
        self.known.reached |= {which: max(end, reached.get(which, end)) for which, end in ends.items()}


def name_of(place: CheckpointPlace, sink: str) -> str:
    """The name of a check in the store, and in those of its tables."""
    return re.sub(r"\W", "_", f"{place.name} {sink}")


def are_lost(reached: Offsets, firsts: Offsets) -> bool:
    """Whether records are gone that were not read."""
    return any(firsts.get(which, 0) > offset for which, offset in reached.items())
