"""The records that a query has committed, and which of them the source topic still has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep
from typing import TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.checkpoint_names import REAL_TIME, CheckpointPlace
from contract.storage.paths import StoragePath
from pipeline.checkpoint.contents import FILES, Batch, Checkpoint, Offsets
from pipeline.checkpoint.journal import known_batches
from pipeline.sources.kafka import first_and_end_offsets, records_between, source_partitions

_LOOKS, _SECONDS_BETWEEN = 100, 0.02
T = TypeVar("T")


@dataclass(frozen=True)
class Prefix:
    """The records that a query has read.

    committed: the last committed batch. planned: the last planned batch, which is `committed` or the next. first: the offsets where the
    query started. starts: the first offsets that can still be read. ends, planned_ends: the end offsets of the two batches. batches: all
    known batches, in order. records: how many are left of the committed batches. is_cut: whether the source has lost records.
    is_of_source: whether the `topic` of a row is one that the query reads. notes: lines about the source for the user.
    """

    committed: int
    planned: int
    first: Offsets
    starts: Offsets
    ends: Offsets
    planned_ends: Offsets
    batches: tuple[Batch, ...]
    records: int
    is_cut: bool
    is_of_source: Column
    notes: Sequence[str] = ()

    def watermark_ms(self, number: int) -> int:
        """The watermark by which the batch with that number finalizes windows; 0 if there is no such batch."""
        return next((batch.watermark_ms for batch in reversed(self.batches) if batch.number == number), 0)


def between_batches(place: CheckpointPlace, look: Callable[[], T]) -> tuple[int, int, T]:
    """The last batch committed before `look` and the last planned after it, at most one apart, and the result of `look`.

    Raises StreamgaugeError when batches complete faster than `look` returns.
    """
    checkpoint = Checkpoint(place.folder)
    for _ in range(_LOOKS):
        committed = checkpoint.last_committed
        seen = look()
        planned = max([*checkpoint.planned, committed])
        if planned <= committed + 1:
            return committed, planned, seen
        sleep(_SECONDS_BETWEEN)
    msg = f"batches of {place.name} finish faster than Kafka's offsets can be read; verify again when there is less load, or run the pipeline with STREAMGAUGE_TRIGGER_SECONDS=1"
    raise StreamgaugeError(msg)


@dataclass(frozen=True)
class SourceRecords:
    """The records that a query has read from a topic, according to the checkpoint at `place`."""

    spark: SparkSession
    settings: Settings
    place: CheckpointPlace

    def prefix(self, committed: int, planned: int) -> Prefix:
        """The prefix up to those batches, limited to the records that Kafka still has.

        Raises StreamgaugeError when the topic holds fewer records than the query has read, that is, it was recreated.
        """
        place = self.place
        batches = tuple(batch for batch in known_batches(place) if batch.number <= planned)
        if place.name.mode == REAL_TIME:
            planned, batches = self._with_the_rest(batches, committed)
        if any(FILES in batch.ends for batch in batches):
            msg = "the query has read files, not a topic; set STREAMGAUGE_NEST_SOURCE to the value of that run"
            raise StreamgaugeError(msg)
        first = Checkpoint(place.folder).first_offsets()
        committed_ends, planned_ends = (
            batch_numbered(number, batches, place.folder).ends if number >= 0 else first for number in (committed, planned)
        )
        # A batch lists every partition known to it. A partition that first appears in the next batch has contributed nothing yet.
        begin = {which: first.get(which, 0) for which in planned_ends}
        ends = {which: committed_ends.get(which, start) for which, start in begin.items()}
        kept = first_and_end_offsets(self.settings, planned_ends)
        for (topic, number), end in planned_ends.items():
            if kept[topic, number][1] < end:
                msg = f"topic {topic} holds {kept[topic, number][1]} records in partition {number}, and {end} were taken from it: the topic was recreated. Delete {place.folder} to recount from the start"
                raise StreamgaugeError(msg)
        starts = {which: min(max(begin[which], kept[which][0]), end) for which, end in planned_ends.items()}
        cuts = [
            f"retention has cut {topic}-{number}: the query began at offset {begin[topic, number]:,}, the topic now begins at {start:,}"
            for (topic, number), start in sorted(starts.items())
            if start > begin[topic, number]
        ]
        topics = {topic for topic, _ in ends}
        # A query with a topic pattern may find new topics at any time.
        is_of_source = F.col("topic") == topics.pop() if len(topics) == 1 else F.lit(True)  # noqa: FBT003
        records = sum(max(end - starts[which], 0) for which, end in ends.items())
        return Prefix(committed, planned, first, starts, ends, planned_ends, batches, records, bool(cuts), is_of_source, cuts)

    def between(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """The records of each partition from its offset in `starts` up to, not including, its offset in `ends`: columns of RECORD."""
        return records_between(self.spark, self.settings, starts, ends)

    def unknown_files(self, rows: DataFrame) -> list[str]:  # noqa: ARG002 - as of files
        """Always empty: `compare` already finds rows of foreign partitions."""
        return []

    def _with_the_rest(self, batches: tuple[Batch, ...], committed: int) -> tuple[int, tuple[Batch, ...]]:
        """The committed batches and one more, with everything that the topic holds: in real-time mode, a batch has no plan until it ends.

        It may read partitions that no earlier batch has read.
        """
        known = tuple(batch for batch in batches if batch.number <= committed)
        read = {which for batch in known for which in batch.ends} or Checkpoint(self.place.folder).first_offsets().keys()
        partitions = [which for topic in {topic for topic, _ in read} for which in source_partitions(self.settings, topic)]
        ends = {which: end for which, (_, end) in first_and_end_offsets(self.settings, partitions).items()}
        watermark_ms = Checkpoint(self.place.folder).watermark_after(committed) or 0
        return committed + 1, (*known, Batch(committed + 1, ends, watermark_ms))


def batch_numbered(number: int, batches: Sequence[Batch], folder: StoragePath) -> Batch:
    """The batch with that number. Raises StreamgaugeError when it is missing, because the checkpoint in `folder` is damaged."""
    for batch in reversed(batches):
        if batch.number == number:
            return batch
    msg = f"{folder} has no offsets of batch {number}, which it has committed: it is damaged; restore it, or delete it to recount from the start"
    raise StreamgaugeError(msg)
