"""Reads Spark's checkpoint of a query: the offsets and watermark of each micro-batch, and which batches are committed.

Spark writes `offsets/N` when it plans batch N, before the batch writes a row, and `commits/N` when all its rows are in the sink. A batch
that was planned but not committed runs again with the same plan. Both folders keep roughly the last hundred batches.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from contract.checkpoints.names import CheckpointPlace
from infrastructure.errors import StreamgaugeError
from infrastructure.storage.paths import StoragePath, names_in, text_of

T = TypeVar("T")
Partition = tuple[str, int]
"""Topic and partition number."""
Offsets = Mapping[Partition, int]
FILES: Partition = ("files", 0)
"""The partition of a query that reads files. Its end is the number of listings that a batch has read."""
JOURNAL = ".journal"
"""The ending of the file with all batches: pipeline/checkpoint/journal.py."""
WAYS_OUT = (
    "restore a copy of the whole checkpoint, and of the same time the archive or database table that the query writes, "
    "or write all again from the records that the source still has"
)
"""The two remedies for a damaged checkpoint. `streamgauge reset` is for the second."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned micro-batch.

    ends: the end offset of each partition. For files, the number of entries (sources.files.SourceFile) read so far, under the single partition
    FILES.
    watermark_ms: in ms since 1970. The batch evicts state by it; the next batch drops rows as too late by it.
    """

    number: int
    ends: Offsets
    watermark_ms: int


class Checkpoint:
    """Reads the checkpoint in `folder`, also while the query runs. Each file appears whole and never changes.

    All methods raise StoreUnavailable when the object store cannot be reached.
    """

    def __init__(self, folder: StoragePath) -> None:
        self.folder = folder

    @property
    def query_id(self) -> str | None:
        """Spark's id of the query, new for each new checkpoint. None before the first start."""
        text = text_of(self.folder / "metadata")
        return None if text is None else _field(text, "id", str, self.folder / "metadata")

    @property
    def planned(self) -> list[int]:
        """The numbers of the batches whose plan still exists, in order."""
        return _numbers(self.folder / "offsets")

    @property
    def committed(self) -> list[int]:
        """The numbers of the committed batches that Spark still keeps, in order."""
        return _numbers(self.folder / "commits")

    @property
    def last_committed(self) -> int:
        """The number of the last committed batch; -1 before the first."""
        return max(self.committed, default=-1)

    def batch(self, number: int) -> Batch | None:
        """The plan of a batch. None if it does not exist or no longer exists."""
        path = self.folder / "offsets" / str(number)
        text = text_of(path)
        if text is None:
            return None
        # A version, metadata, and one line per source. Spark counts each branch of a source as a source, all with the same offsets.
        _, metadata, *sources = _lines(text, path)
        ends = {partition: end for source in sources if source != "-" for partition, end in _offsets(source, path).items()}
        return Batch(number, ends, _field(metadata, "batchWatermarkMs", int, path))

    @property
    def last_begun_ms(self) -> int | None:
        """When the last planned batch began, in ms since 1970. None before the first is planned."""
        path, lines = self._last_plan()
        return _field(lines[1], "batchTimestampMs", int, path) if lines else None

    def check(self) -> None:
        """Raises StreamgaugeError if a file that Spark reads when the query starts is missing, empty or cut.

        Spark's checksums detect changed and truncated files of the state, but not empty ones.
        """
        planned, committed = last_entry(self.folder / "offsets", lines=3), last_entry(self.folder / "commits", lines=2)
        is_new, query_id = max(planned, committed) < 0, self.query_id
        if is_new:
            return
        if query_id is None:
            raise _damaged(self.folder / "metadata", "it is missing")
        if planned not in {committed, committed + 1}:
            incomplete = "offsets" if planned < committed else "commits"
            raise _damaged(self.folder / incomplete / str(max(committed, planned - 1)), "it is missing")
        source, plan = self.folder / "sources" / "0", self.batch(planned)
        last_read = plan.ends.get(FILES, 1) - 1 if plan else 0
        if last_entry(source, lines=2) < last_read:
            raise _damaged(source / str(last_read), "it is missing")
        if isinstance(self.folder, Path):
            for path in self.folder.glob("state/**/*.delta"):
                if path.stat().st_size == 0:
                    raise _damaged(path, "it is empty")

    @property
    def sources(self) -> int | None:
        """The number of sources in Spark's plan, which later runs must keep. None before the first batch is planned."""
        return len(self.partitions) or None

    @property
    def partitions(self) -> list[list[Partition]]:
        """The partitions that each source has read, which later runs must leave to it. Empty before the first batch is planned."""
        path, lines = self._last_plan()
        return [[] if source == "-" else sorted(_offsets(source, path)) for source in lines[2:]]

    def _last_plan(self) -> tuple[StoragePath, list[str]]:
        """The file with the plan of the last batch, and its lines; none before the first is planned."""
        path = self.folder / "offsets" / str(max(self.planned, default=0))
        text = text_of(path)
        return path, [] if text is None else _lines(text, path)

    def first_offsets(self) -> Offsets:
        """The offsets where the query started, for the partitions that existed then. Newer partitions start at 0."""
        first: dict[Partition, int] = {}
        for source in names_in(self.folder / "sources"):
            path = self.folder / "sources" / source / "0"
            if text := text_of(path):
                first |= _offsets(_lines(text, path)[1], path)
        return first

    def watermark_after(self, number: int) -> int | None:
        """The watermark, in ms, after batch `number`. None when its commit does not exist or has none."""
        path = self.folder / "commits" / str(number)
        text = text_of(path)
        if text is None or "nextBatchWatermarkMs" not in _parsed(line := _lines(text, path)[1], path):
            return None
        return _field(line, "nextBatchWatermarkMs", int, path)


def last_entry(log: StoragePath, lines: int) -> int:
    """The newest number in a log of Spark; -1 if it is empty. An entry is a file N, or N.compact, which has all entries before it.

    lines: how many lines an entry has at least. Raises StreamgaugeError for a missing entry, and for an empty or cut one. Reads only the last
    two entries, or those from N.compact on.
    """
    entries = {int(name.partition(".")[0]): log / name for name in names_in(log) if name.removesuffix(".compact").isdigit()}
    last = max(entries, default=-1)
    compact = max((number for number, path in entries.items() if path.suffix), default=None)
    for number in range(min(entries, default=0) if compact is None else compact, last + 1):
        if number not in entries:
            raise _damaged(log / str(number), "it is missing")
    for number in range(max(min(entries, default=0), last - 1) if compact is None else compact, last + 1):
        text = text_of(entries[number]) or ""
        entry_lines = text.splitlines()
        # A null byte stands before the offsets of a Kafka source.
        if len(entry_lines) < lines or not re.fullmatch(r"\0?v\d+", entry_lines[0]):
            raise _damaged(entries[number], f"it has {len(text)} characters")
        if entry_lines[-1] not in {entry_lines[0], "-"}:
            _parsed(entry_lines[-1], entries[number])
    return last


def offsets_of(by_topic: Mapping[str, Mapping[str, int]]) -> dict[Partition, int]:
    """Offsets by partition, from Spark's JSON: {"topic": {"0": 17}} for Kafka, {"logOffset": 3} (the last entry) for files."""
    if isinstance(entry := by_topic.get("logOffset"), int):
        return {FILES: entry + 1}
    return {(topic, int(number)): int(offset) for topic, numbers in by_topic.items() for number, offset in numbers.items()}


def known_batches(checkpoint: CheckpointPlace) -> list[Batch]:
    """Every known batch of the checkpoint, from the journal and Spark's own log, ordered by number."""
    spark_log = Checkpoint(checkpoint.folder)
    # The log first: batches that Spark deletes from it meanwhile are in the journal by then.
    logged = [batch for number in spark_log.planned if (batch := spark_log.batch(number))]
    batches = _journaled(checkpoint.note(JOURNAL), spark_log.query_id)
    for batch in logged:
        _add(batches, batch)
    return list(batches.values())


def _journaled(path: Path, query_id: str | None) -> dict[int, Batch]:
    """The batches of the query with that id, by number. Skips lines that are not whole."""
    batches: dict[int, Batch] = {}
    owner = None
    for line in (text_of(path) or "").splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
            entry = json.loads(line)
            owner = entry.get("query_id", owner)
            if "batch" in entry and owner == query_id:
                _add(batches, Batch(int(entry["batch"]), offsets_of(entry["ends"]), int(entry["watermark_ms"])))
    return batches


def _add(batches: dict[int, Batch], batch: Batch) -> None:
    """Adds a batch. It replaces a different batch of the same number and all later ones."""
    if batches.get(batch.number) == batch:
        return
    while batches and (last := next(reversed(batches))) >= batch.number:
        del batches[last]
    batches[batch.number] = batch


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """The batch of a progress report, in the JSON that Spark emits after a batch."""
    ends = {partition: end for source in progress["sources"] for partition, end in offsets_of(source["endOffset"] or {}).items()}
    watermark = datetime.fromisoformat(progress["eventTime"]["watermark"])
    return Batch(progress["batchId"], ends, (watermark - _EPOCH) // timedelta(milliseconds=1))


def nested(offsets: Offsets) -> dict[str, dict[str, int]]:
    """The inverse of `offsets_of`."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(number)] = offset
    return by_topic


def _numbers(folder: StoragePath) -> list[int]:
    return sorted(int(name) for name in names_in(folder) if name.isdigit())


def _lines(text: str, path: StoragePath) -> list[str]:
    lines = text.splitlines()
    if len(lines) < 2:  # noqa: PLR2004 - a version, and what the file tells
        raise _damaged(path, f"it has {len(text)} characters")
    return lines


def _parsed(text: str, path: StoragePath) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(parsed, dict):
        raise _damaged(path, f"it has {text} instead of an object")
    return parsed


def _field(text: str, name: str, kind: type[T], path: StoragePath) -> T:
    value = _parsed(text, path).get(name)
    if not isinstance(value, kind):
        raise _damaged(path, f"its {name} is {json.dumps(value)}")
    return value


def _offsets(text: str, path: StoragePath) -> dict[Partition, int]:
    try:
        return offsets_of(_parsed(text, path))
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise _damaged(path, f"it has {text} instead of offsets") from error


def _damaged(path: StoragePath, why: str) -> StreamgaugeError:
    return StreamgaugeError(f"{path} is damaged ({why}); {WAYS_OUT} (`streamgauge reset` the query)")
