"""The base of all checks, and of those that `streamgauge audit` repeats: they read only what is new since the last time."""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from audit.audited import Facts
from audit.checks.store import Store
from audit.reading.read_range import ReadRange, read_range_of
from audit.time_range import TimeRange
from audit.verdicts.verdict import Verdict
from contract.checkpoints.contents import Batch, Checkpoint, Offsets, known_batches
from contract.checkpoints.names import CheckpointPlace

_REREAD = 2
"""So many of the newest batches are read again each time: Spark may have planned them anew. One more is kept, to know that none is missing."""


@dataclass
class Progress:
    """How far a check has come, beside its tables in the store.

    query_id: of the checkpoint. retained_offsets: where the records of the source began when the check was made first. source_offsets,
    sink_offsets: the next ones to read, of the source and of the topic that the query writes.
    """

    query_id: str | None
    retained_offsets: Offsets
    source_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    sink_offsets: dict[tuple[str, int], int] = field(default_factory=dict)


P = TypeVar("P", bound=Progress)


class Batches:
    """The batches of one query, without those that no longer matter: a long history is read once, at the start."""

    def __init__(self) -> None:
        self.read: list[Batch] = []
        self.has_forgotten = False

    def of(self, place: CheckpointPlace) -> Sequence[Batch]:
        """Those that were read before, and those that were planned since the last call."""
        checkpoint, settled = Checkpoint(place.folder), self.read[:-_REREAD]
        last = settled[-1].number if settled else -1
        later = [batch for number in checkpoint.planned if number > last and (batch := checkpoint.batch(number))]
        if settled and later and later[0].number == last + 1:
            self.read = [*settled, *later]
        else:
            self.read, self.has_forgotten = known_batches(place), False
        return self.read

    def forget(self, offsets: Offsets, committed: int) -> None:
        """Forgets the committed batches that end before these offsets, except the last of them, whose watermark the next batch needs."""
        ended = [
            index
            for index, batch in enumerate(self.read)
            if batch.number <= committed and all(batch.ends.get(partition, 0) <= offset for partition, offset in offsets.items())
        ]
        first = min(max(ended, default=0), max(len(self.read) - _REREAD - 1, 0))
        self.read = self.read[first:]
        self.has_forgotten |= first > 0


class Check(ABC):
    """The check of one result. read_range, facts: the records that its query has read, and what is taken from each."""

    read_range: ReadRange[Any]
    facts: Sequence[Facts]

    @abstractmethod
    def prepare(self) -> None:
        """Reads what the query has written, and sets `read_range` and `facts`. Raises StreamgaugeError for what cannot be checked."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """Compares what the query has written with the facts in the database. Raises StreamgaugeError for what cannot be checked."""

    def has_grown(self) -> bool:
        """Whether what is compared may have been replaced by something newer since, so that a wrong row may be no error."""
        return False


class IncrementalCheck(Check, Generic[P]):
    """A check that can be made again, and then reads only what is new. progress: how far it has come.

    span: checks only the rows of that time. checked_at: when it was made last.
    """

    progress: P

    def __init__(self, sink: str, place: CheckpointPlace, store: Store, span: TimeRange | None) -> None:
        self.name, self.place, self.store, self.settings = name_of(place, sink), place, store, store.settings
        self._asked_span = span
        self.batches = Batches()
        self._last: tuple[object, Verdict] | None = None
        self.checked_at: datetime | None = None

    def prepare(self) -> None:
        self._set_read_range()
        if self._asked_span is not None:
            self.narrow(self._asked_span)
        self.read()

    def recheck(self) -> Verdict:
        """The verdict now, in the transaction of the caller. "right" stands if nothing has moved. Raises StreamgaugeError for what cannot be checked."""
        self._set_read_range()
        state = self.read_range.committed, self.read_range.batches[-1:], self.read_range.sink_state, self.read_range.retained_offsets
        if self._last is None or self._last[0] != state or self._last[1].verdict != "right":
            self.read()
            self._load_facts()
            self._last = state, self.verdict()
            self.save()
        self.checked_at = datetime.now(UTC)
        return self._last[1]

    def narrow(self, span: TimeRange) -> None:
        """Leaves the rows of records with Kafka timestamps within the span."""
        self.read_range = self.read_range.at_times(span, self.settings.kafka)

    @abstractmethod
    def read_sink(self) -> Any:  # noqa: ANN401 - each kind has its own
        """What the query's sink holds, as the end offsets of its topic."""

    @abstractmethod
    def sink_has_lost_rows(self) -> bool:
        """Whether the sink has lost rows that were not read, so that the check has to start over."""

    @abstractmethod
    def start_over(self, query_id: str | None) -> P:
        """Deletes everything that was kept."""

    @abstractmethod
    def read(self) -> None:
        """Reads what is new in the sink."""

    @abstractmethod
    def save(self) -> None:
        """Saves what the next check needs."""

    @property
    def ends(self) -> Offsets:
        """Where the records end that the check needs."""
        return self.read_range.ends

    def _set_read_range(self) -> None:
        """Sets the range of records that the query has read, and how far the check has come in it."""
        query_id, progress = Checkpoint(self.place.folder).query_id, self.store.state(self.name)
        if progress is None or progress.query_id != query_id:
            progress, self.batches = None, Batches()
        self.read_range = read_range_of(self.place, self.read_sink, self.settings, self.batches.of)
        if progress is not None:
            self.progress = progress
            if has_gap(progress.source_offsets, self.read_range.retained_offsets) or self.sink_has_lost_rows():
                progress, self.batches = None, Batches()
                self.read_range = read_range_of(self.place, self.read_sink, self.settings, self.batches.of)
        if progress is None:
            self.progress, self._last = self.start_over(query_id), None
        retained_offsets = {**self.read_range.retained_offsets, **self.progress.retained_offsets}
        self.read_range = replace(self.read_range, retained_offsets=retained_offsets)

    def _load_facts(self) -> None:
        """Adds the facts of the records that were not read."""
        next_offsets, ends = self.progress.source_offsets, self.ends
        starts = {partition: min(next_offsets.get(partition, self.read_range.starts[partition]), end) for partition, end in ends.items()}
        if starts != ends or not next_offsets:
            self.store.recount.load(self.facts, self.store.records.between(starts, ends))
        next_offsets |= {partition: max(end, next_offsets.get(partition, end)) for partition, end in ends.items()}


def name_of(place: CheckpointPlace, sink: str) -> str:
    """The name of a check in the store, and in those of its tables."""
    return re.sub(r"\W", "_", f"{place.name} {sink}")


def has_gap(next_offsets: Offsets, first_offsets: Offsets) -> bool:
    """Whether records are gone that were not read."""
    return any(first_offsets.get(partition, 0) > offset for partition, offset in next_offsets.items())
