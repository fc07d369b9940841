"""How a query writes its table and what a kill leaves, as a state machine (docs/explained/checkpoints.md).

Each record counts in the window of its time, unless that window has ended by the watermark of the batch before its own. The table is a compacted
topic: the last count of each window. A process can be killed between any two steps. `explored` takes the steps in every order, so it finds every
state that there is. protocol_on_spark.py takes some of these orders on Spark.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from random import Random

WINDOW, DELAY = 10, 5
"""The length of a window and the delay of the watermark, in the unit of the records' times."""
Counts = tuple[tuple[int, int], ...]
"""Windows and their counts, sorted."""


@dataclass(frozen=True)
class Batch:
    """A planned batch: the records up to `end`, and the watermark that decides which records of the next batch are too late."""

    end: int
    watermark: int


@dataclass(frozen=True)
class State:
    """The records that have come, the checkpoint and the table, which outlive a kill; and the process.

    offsets: the planned batches, of which the first `commits` are committed. stores: the state store before the first batch, and after each.
    catches_up: the process is in its first batch. has_committed: it has ended a batch. written: the windows of the running batch that are in the table. read, counts: what a
    process in real-time mode has read, and its counts.
    """

    come: int = 0
    kills: int = 0
    offsets: tuple[Batch, ...] = ()
    commits: int = 0
    stores: tuple[Counts, ...] = ((),)
    table: Counts = ()
    runs: bool = False
    catches_up: bool = False
    has_committed: bool = False
    has_counted: bool = False
    written: frozenset[int] = frozenset()
    read: int = 0
    counts: Counts = ()

    @property
    def committed_end(self) -> int:
        """The first record that is in no committed batch."""
        return self.offsets[self.commits - 1].end if self.commits else 0

    @property
    def committed_watermark(self) -> int:
        """The watermark by which the next batch drops what is too late."""
        return self.offsets[self.commits - 1].watermark if self.commits else 0


@dataclass(frozen=True)
class Query:
    """A query over records with these times, of which the first `most_kills` processes are killed.

    is_real_time: each record's row is written as it comes; a checkpoint then says which records were read. catches_up: after a start, a
    query in real-time mode first processes in one micro-batch all that has come.

    The others are mistakes: the commit does not wait for all rows; a batch that runs again has another watermark, or the newest state.
    """

    times: Sequence[int]
    most_kills: int = 2
    is_real_time: bool = False
    catches_up: bool = True
    commits_early: bool = False
    forgets_watermark: bool = False
    takes_newest_state: bool = False

    def counted(self, counts: Counts, start: int, end: int, watermark: int) -> Counts:
        """The counts after the records from `start` to `end`."""
        found = Counter(dict(counts))
        found.update(time // WINDOW for time in self.times[start:end] if (time // WINDOW + 1) * WINDOW > watermark)
        return tuple(sorted(found.items()))

    def watermark(self, end: int) -> int:
        """The watermark after the records up to `end`."""
        return max(0, max(self.times[:end], default=0) - DELAY)

    def recounted(self, batches: Sequence[Batch]) -> dict[int, int]:
        """The table after these batches, as `verify` has it."""
        counts: Counts = ()
        for before, batch in pairwise([Batch(0, 0), *batches]):
            counts = self.counted(counts, before.end, batch.end, before.watermark)
        return dict(counts)

    def is_at_end(self, state: State) -> bool:
        """Whether every record has come and is in a committed batch."""
        return len(state.offsets) == state.commits and state.committed_end == len(self.times)

    def steps(self, state: State) -> Iterator[State]:
        """The states that can follow."""
        if state.come < len(self.times):
            yield replace(state, come=state.come + 1)
        if not state.runs:
            yield replace(state, runs=True, catches_up=self.is_real_time and self.catches_up)
            return
        if state.kills < self.most_kills:
            yield State(state.come, state.kills + 1, state.offsets, state.commits, state.stores, state.table)
        if not self.is_real_time or state.catches_up:
            yield from self._in_micro_batches(state)
        else:
            yield from self._in_real_time(state)

    def _in_micro_batches(self, state: State) -> Iterator[State]:
        if len(state.offsets) == state.commits:
            watermark = self.watermark(state.committed_end)
            # Without new records, a watermark that has advanced is worth a batch, which drops ended windows from the state.
            if state.come > state.committed_end or (state.has_committed and watermark > state.committed_watermark):
                yield replace(state, offsets=(*state.offsets, Batch(state.come, watermark)))
            elif state.catches_up:
                yield replace(state, catches_up=False)
            return
        batch = state.offsets[-1]
        if not state.has_counted:
            watermark = self.watermark(state.come) if self.forgets_watermark else state.committed_watermark
            before = state.stores[-1 if self.takes_newest_state else state.commits]
            after = self.counted(before, state.committed_end, batch.end, watermark)
            yield replace(state, has_counted=True, stores=(*state.stores[: state.commits + 1], after))
            return
        changed = dict(set(state.stores[-1]) - set(state.stores[-2]))
        waiting = changed.keys() - state.written
        for window in waiting:
            yield replace(state, table=_with(state.table, window, changed[window]), written=state.written | {window})
        if not waiting or self.commits_early:
            yield replace(state, commits=state.commits + 1, catches_up=False, has_committed=True, has_counted=False, written=frozenset())

    def _in_real_time(self, state: State) -> Iterator[State]:
        if state.read <= state.committed_end:
            state = replace(state, read=state.committed_end, counts=state.stores[state.commits])
        if state.read < state.come:
            counts, table = self.counted(state.counts, state.read, state.read + 1, state.committed_watermark), state.table
            for window, count in set(counts) - set(state.counts):
                table = _with(table, window, count)
            yield replace(state, read=state.read + 1, counts=counts, table=table)
        if state.read > state.committed_end:
            batch = Batch(state.read, self.watermark(state.committed_end))
            offsets, stores = (*state.offsets[: state.commits], batch), (*state.stores[: state.commits + 1], state.counts)
            yield replace(state, offsets=offsets, commits=state.commits + 1, stores=stores)


def _with(table: Counts, window: int, count: int) -> Counts:
    return tuple(sorted((dict(table) | {window: count}).items()))


def explored(query: Query) -> Iterator[State]:
    """Every state that the query can come into, once."""
    seen, waiting = {State()}, [State()]
    while waiting:
        state = waiting.pop()
        yield state
        following = set(query.steps(state)) - seen
        seen |= following
        waiting.extend(following)


class Schedules:
    """The orders in which the steps can be taken. number: how many there are."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._from = cache(self._counted)
        self.number = self._from(State())

    def sampled(self, random: Random) -> list[State]:
        """The states of one of them; each has the same chance."""
        states = [State()]
        while following := list(self._query.steps(states[-1])):
            states += random.choices(following, [self._from(state) for state in following])
        return states

    def _counted(self, state: State) -> int:
        return sum(map(self._from, self._query.steps(state))) or 1
