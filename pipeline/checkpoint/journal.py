"""The journal of all batches of a query. Spark's checkpoint deletes the plan of a batch after a hundred further batches.

A journal is a file next to the checkpoint (see contract/checkpoints/names.py) with one line per batch: its offsets and its
watermark. A line before them has the id of their query, which is new for each new checkpoint. The journal shows which batch read a record,
and by which watermark that batch dropped rows as too late. The process that runs the query writes it: the whole file before each start, then one
line whenever Spark reports a batch. After a missed report, it adds the lines of all plans that are still in `offsets/`. Only
`streamgauge verify` depends on the journal, so a failed write does not stop a query. `verify` reports missing batches as unknown.

A kill loses nothing, because Spark deletes a plan only a hundred commits later. A batch that was planned but not committed already has its
line then, and keeps its plan when it runs again. If a plan changes nevertheless (after a checkpoint was restored), the newer line replaces
the old one and the lines of all later batches.
"""

import contextlib
import json
from collections.abc import Iterable

from contract.checkpoints.contents import JOURNAL, Batch, Checkpoint, Offsets, Partition, known_batches, nested
from contract.checkpoints.names import CheckpointPlace
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.topic_ends import first_and_end_offsets
from infrastructure.settings import Settings
from infrastructure.storage.paths import write_whole


class BatchJournal:
    """The journal of a checkpoint. Only the process that holds the checkpoint's lock writes it."""

    def __init__(self, checkpoint: CheckpointPlace) -> None:
        self.path = checkpoint.note(JOURNAL)
        self._place, self._checkpoint = checkpoint, Checkpoint(checkpoint.folder)
        self._query_id: str | None = None
        self._last = -1

    @classmethod
    def followed(cls, checkpoint: CheckpointPlace, settings: Settings, partitions: Iterable[Partition]) -> "BatchJournal":
        """Opens the journal of a checkpoint and brings it up to date. Call it before each start of the query.

        partitions: of the source. Batches entirely before the source's earliest offsets are dropped, if Kafka can be reached.
        Raises StreamgaugeError when the checkpoint is damaged.
        """
        earliest: dict[Partition, int] = {}
        with contextlib.suppress(StreamgaugeError):
            earliest = {partition: first for partition, (first, _) in first_and_end_offsets(settings.kafka, partitions).items()}
        journal = cls(checkpoint)
        journal.open(earliest)
        return journal

    def open(self, earliest: Offsets) -> None:
        """Writes all batches that are known, except those entirely below `earliest`."""
        batches = _trimmed(known_batches(self._place), earliest)
        self._query_id = self._checkpoint.query_id
        with contextlib.suppress(OSError):
            write_whole(self.path, _lines(self._query_id, batches))
            self._last = batches[-1].number if batches else -1

    def add(self, batch: Batch) -> None:
        """Adds a batch that Spark has reported, and any missing batches before it, unless it is already present."""
        if batch.number == self._last + 1:
            self._append([batch])
        elif batch.number > self._last:
            self.catch_up()

    def catch_up(self) -> None:
        """Adds the batches that were planned since the last entry."""
        # The batches will still be there when the store is back. Of a damaged plan, the next start tells.
        with contextlib.suppress(OSError, StreamgaugeError):
            self._append(
                [batch for number in self._checkpoint.planned if number > self._last and (batch := self._checkpoint.batch(number))]
            )

    def _append(self, batches: list[Batch]) -> None:
        if not batches:
            return
        # A batch that cannot be written now is written with the next one.
        with contextlib.suppress(OSError, StreamgaugeError):
            self._query_id = self._query_id or self._checkpoint.query_id  # a new checkpoint has none before its first start
            with self.path.open("a") as file:
                file.write(_lines(self._query_id, batches))
            self._last = batches[-1].number


def _trimmed(batches: list[Batch], earliest: Offsets) -> list[Batch]:
    """Removes batches entirely below `earliest`, except the last one, where the next batch begins."""
    below = [
        index for index, batch in enumerate(batches) if all(end <= earliest.get(partition, 0) for partition, end in batch.ends.items())
    ]
    return batches[max(below, default=0) :]


def _lines(query_id: str | None, batches: Iterable[Batch]) -> str:
    """Lines for the journal. Each begins with a line break, which ends a line that a kill or a full disk has left incomplete."""
    entries = ({"batch": batch.number, "watermark_ms": batch.watermark_ms, "ends": nested(batch.ends)} for batch in batches)
    return "".join(f"\n{json.dumps(entry, separators=(',', ':'))}" for entry in ({"query_id": query_id}, *entries))
