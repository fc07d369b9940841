"""What the continuous checks of all kinds have in common: each goes on where its last look ended, unless what it looks at is another one now."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from audit.audited import Facts, common_pattern
from audit.continuous.store import Store
from audit.prefix import Prefix, prefix_of
from audit.records import RecordReader
from audit.verdict import Verdict
from contract.checkpoints.contents import Batch, Checkpoint, Offsets, known_batches
from contract.checkpoints.names import CheckpointPlace
from contract.settings import Settings

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


class Watch(ABC, Generic[P]):
    """The continuous check of one result. name: of its tables in the store. looked: when a look has ended last, None before the first."""

    def __init__(self, name: str, place: CheckpointPlace, store: Store, records: RecordReader, settings: Settings) -> None:
        self.name, self.place, self.store, self.records, self.settings = name, place, store, records, settings
        self.batches = Batches()
        self._last: tuple[object, Verdict] | None = None
        self.looked: datetime | None = None

    def look(self) -> Verdict:
        """The verdict now, in the transaction of the caller. "right" stands if nothing has moved. Raises StreamgaugeError for what cannot be checked."""
        prefix, known = self._proceed()
        at = prefix.committed, prefix.known[-1:], prefix.seen, prefix.kept
        if self._last is None or self._last[0] != at or self._last[1].verdict != "right":
            self._last = at, self.compare(prefix, known)
        self.looked = datetime.now(UTC)
        return self._last[1]

    @abstractmethod
    def seen(self) -> Any:  # noqa: ANN401 - of each kind another
        """What is found of what the query writes, as the ends of its topic."""

    @abstractmethod
    def has_lost(self, known: P, seen: Any) -> bool:  # noqa: ANN401
        """Whether what the query writes has lost what was known of it."""

    @abstractmethod
    def compare(self, prefix: Prefix[Any], known: P) -> Verdict:
        """Reads what is new, and keeps what is known then."""

    @abstractmethod
    def begin(self, query_id: str | None, prefix: Prefix[Any]) -> P:
        """Forgets everything."""

    def _proceed(self) -> tuple[Prefix[Any], P]:
        """The prefix of the query, and how far it is known."""
        query_id, known = Checkpoint(self.place.folder).query_id, self.store.state(self.name)
        if known is None or known.query_id != query_id:
            known, self.batches = None, Batches()
        prefix = prefix_of(self.place, self.seen, self.settings, self.batches.of)
        if known is not None and (are_lost(known.reached, prefix.kept) or self.has_lost(known, prefix.seen)):
            known, self.batches = None, Batches()
            prefix = prefix_of(self.place, self.seen, self.settings, self.batches.of)
        if known is None:
            known, self._last = self.begin(query_id, prefix), None
        return replace(prefix, kept={**prefix.kept, **known.kept}), known

    def load(self, facts: Sequence[Facts], prefix: Prefix[Any], known: P, ends: Offsets) -> None:
        """Adds the facts of the records up to `ends` that were not read. All are of the same records."""
        starts = {which: min(known.reached.get(which, prefix.starts[which]), end) for which, end in ends.items()}
        if starts != ends or not known.reached:
            self.store.recount.load(facts, self.records.between(starts, ends, only=common_pattern(facts)))
        known.reached |= {which: max(end, known.reached.get(which, end)) for which, end in ends.items()}


def are_lost(reached: Offsets, firsts: Offsets) -> bool:
    """Whether records are gone that were not read."""
    return any(firsts.get(which, 0) > offset for which, offset in reached.items())
