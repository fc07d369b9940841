"""The journal of all batches of a query. Spark's checkpoint deletes the plan of a batch after a hundred further batches.

A journal is a file next to the checkpoint (see contract/storage/checkpoint_names.py) with one line per batch: its offsets and its
watermark. It shows which batch read a record, and by which watermark that batch dropped late rows. The process that runs the query writes
it: one line whenever Spark reports a batch. Before each start, or after a missed report, it adds the lines of all plans that are still in
`offsets/`. Only `streamgauge verify` depends on the journal, so a failed write does not stop a query. `verify` reports missing batches as
unknown.

A kill loses nothing, because Spark deletes a plan only a hundred commits later. The next start removes a line that the kill left
incomplete. A batch that was planned but not committed already has its line then, and keeps its plan when it runs again. If a plan changes
nevertheless (after a checkpoint was restored), the newer line replaces the old one and the lines of all later batches.
"""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace
from contract.storage.paths import StoreUnavailable, write_whole
from pipeline.checkpoint.contents import Batch, Checkpoint, Offsets, Partition, nested, offsets_of
from pipeline.sources.kafka import first_and_end_offsets


class BatchJournal:
    """The journal of a checkpoint. Only the process that holds the checkpoint's lock writes it."""

    def __init__(self, checkpoint: CheckpointPlace) -> None:
        self.path = checkpoint.note(".journal")
        self._checkpoint = Checkpoint(checkpoint.folder)
        self._last = -1
        self._bytes = 0

    @classmethod
    def followed(cls, checkpoint: CheckpointPlace, settings: Settings, partitions: Iterable[Partition]) -> "BatchJournal":
        """Opens the journal of a checkpoint and brings it up to date. Call it before each start of the query.

        partitions: of the source. Batches entirely before the source's earliest offsets are dropped, if Kafka can be reached.
        Raises StreamgaugeError when the checkpoint is damaged.
        """
        earliest: dict[Partition, int] = {}
        with contextlib.suppress(StreamgaugeError):
            earliest = {which: first for which, (first, _) in first_and_end_offsets(settings, partitions).items()}
        journal = cls(checkpoint)
        journal.open(earliest)
        return journal

    def open(self, earliest: Offsets) -> None:
        """Continues the journal, or begins a new one if it belongs to another checkpoint."""
        query_id, batches, self._bytes = _read(self.path)
        if query_id != self._checkpoint.query_id:
            batches, self._bytes = {}, 0
        self._last = max(batches, default=-1)
        kept = _trimmed(list(batches.values()), earliest)
        if len(kept) < len(batches) / 2:
            self._rewrite(kept)
        changed = [number for number in self._checkpoint.planned if number in batches and self._checkpoint.batch(number) != batches[number]]
        if changed:
            self._last = min(changed) - 1
        self.catch_up()

    def add(self, batch: Batch) -> None:
        """Adds a batch that Spark has reported, and any missing batches before it, unless it is already present."""
        if batch.number == self._last + 1:
            self._append([batch])
        elif batch.number > self._last:
            self.catch_up()

    def catch_up(self) -> None:
        """Adds the batches that were planned since the last entry."""
        with contextlib.suppress(StoreUnavailable):  # the batches will still be there when the store is back
            self._append(
                [batch for number in self._checkpoint.planned if number > self._last and (batch := self._checkpoint.batch(number))]
            )

    def _append(self, new: list[Batch]) -> None:
        if not new:
            return
        lines = [_line(batch) for batch in new]
        if self._bytes == 0:
            lines = [_json_line({"query_id": self._checkpoint.query_id}), *lines]
        # A batch that cannot be written now is written with the next one.
        with contextlib.suppress(OSError), self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(self._bytes)
            file.seek(self._bytes)
            file.write(b"".join(lines))
            file.flush()
            self._bytes += sum(map(len, lines))
            self._last = new[-1].number

    def _rewrite(self, batches: list[Batch]) -> None:
        content = b"".join([_json_line({"query_id": self._checkpoint.query_id}), *map(_line, batches)])
        with contextlib.suppress(OSError):
            write_whole(self.path, content.decode())
            self._bytes = len(content)


def known_batches(checkpoint: CheckpointPlace) -> list[Batch]:
    """Every known batch of the checkpoint, from the journal and Spark's own log, ordered by number."""
    own = Checkpoint(checkpoint.folder)
    # The log first: batches that Spark deletes from it meanwhile are in the journal by then.
    logged = [batch for number in own.planned if (batch := own.batch(number))]
    query_id, journaled, _ = _read(BatchJournal(checkpoint).path)
    batches = journaled if query_id == own.query_id else {}
    for batch in logged:
        _add(batches, batch)
    return list(batches.values())


def _read(path: Path) -> tuple[str | None, dict[int, Batch], int]:
    """The query's id, the batches by number, and the length in bytes of the complete lines."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None, {}, 0
    header, *lines = content[: content.rfind(b"\n") + 1].splitlines() or [b""]
    batches: dict[int, Batch] = {}
    try:
        query_id, size = json.loads(header)["query_id"], len(header) + 1
    except (ValueError, KeyError, TypeError):
        return None, {}, 0
    for line in lines:
        try:
            parsed = json.loads(line)
            _add(batches, Batch(parsed["batch"], offsets_of(parsed["ends"]), parsed["watermark_ms"]))
        except (ValueError, KeyError, TypeError):
            break  # nothing after a broken line can be trusted
        size += len(line) + 1
    return query_id, batches, size


def _add(batches: dict[int, Batch], batch: Batch) -> None:
    """Adds a batch. It replaces a different batch of the same number and all later ones."""
    if batches.get(batch.number) == batch:
        return
    while batches and (last := next(reversed(batches))) >= batch.number:
        del batches[last]
    batches[batch.number] = batch


def _trimmed(batches: list[Batch], earliest: Offsets) -> list[Batch]:
    """Removes batches entirely below `earliest`, except the last one, where the next batch begins."""
    below = [
        index for index, batch in enumerate(batches) if earliest and all(end <= earliest.get(which, 0) for which, end in batch.ends.items())
    ]
    return batches[max(below, default=0) :]


def _line(batch: Batch) -> bytes:
    return _json_line({"batch": batch.number, "watermark_ms": batch.watermark_ms, "ends": nested(batch.ends)})


def _json_line(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
