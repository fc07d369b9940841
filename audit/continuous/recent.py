"""The newest records of topics: several results are made of the same ones, which are read once."""

import operator
from collections.abc import Iterator
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from audit.records import SCHEMA, RecordReader
from contract.checkpoints.contents import Offsets

MANY = 20_000
"""More records than this are not kept."""
MOST_BYTES = 16_000_000
"""Of the records that are kept."""


class RecentRecords:
    """Keeps the records that were read last. Use it from one thread."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self.forget()

    def forget(self) -> None:
        """Forgets all records, as those of a topic that was recreated."""
        self._kept: list[tuple[Offsets, pa.Table]] = []
        self._firsts: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}

    def between(self, starts: Offsets, ends: Offsets) -> Iterator[pa.Table]:
        """See records.records_between. Many records, and those before the ones that are kept, are not kept."""
        wanted = {which: end for which, end in ends.items() if starts[which] < end}
        reached = {which: self._ends.get(which, starts[which]) for which in wanted}
        new = {which: end for which, end in wanted.items() if reached[which] < end}
        is_older = any(starts[which] < self._firsts.get(which, starts[which]) for which in wanted)
        are_many = sum(end - reached[which] for which, end in new.items()) > MANY
        if are_many and not is_older:
            self.forget()  # nothing that follows would adjoin what is kept
        if is_older or are_many:
            yield from self._reader.between(starts, ends)
            return
        if new:
            self._keep(new, pa.concat_tables(self._reader.between(reached, new)), reached)
        parts = [_part(table, starts, wanted) for end, table in self._kept if any(starts[which] < end.get(which, 0) for which in wanted)]
        yield pa.concat_tables([SCHEMA.empty_table(), *parts])
        self._drop()

    def _keep(self, ends: Offsets, records: pa.Table, starts: Offsets) -> None:
        self._kept.append((ends, records))
        self._ends |= ends
        self._firsts = {which: starts[which] for which in ends} | self._firsts

    def _drop(self) -> None:
        while sum(table.nbytes for _, table in self._kept) > MOST_BYTES:
            ends, _ = self._kept.pop(0)
            self._firsts |= ends


def _part(records: pa.Table, starts: Offsets, ends: Offsets) -> pa.Table:
    """The records between these offsets."""
    of = [
        (pc.field("topic") == topic)
        & (pc.field("partition") == number)
        & (pc.field("offset") >= starts[topic, number])
        & (pc.field("offset") < end)
        for (topic, number), end in ends.items()
    ]
    return records.filter(reduce(operator.or_, of)) if of else records.slice(0, 0)
