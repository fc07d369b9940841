"""The prefix of a query that reads files: the files that its batches read, according to Spark's file source log.

The rest of verification treats each file as a partition with topic `files:<path>` and number 0, whose offsets are line numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from contract.errors import StreamgaugeError
from contract.storage.checkpoint_names import CheckpointPlace
from pipeline.checkpoint.contents import FILES, Batch, Offsets, Partition
from pipeline.checkpoint.journal import known_batches
from pipeline.sources.files import PROBLEM, Files, SourceFile, records_of, source_files, topic_of
from pipeline.verification.outcome import first_of
from pipeline.verification.prefix import Prefix, batch_numbered

END = 2**31
"""An offset after the last line of any file."""


@dataclass(frozen=True)
class SourceFiles:
    """The files that a query has read from `source`, according to its `checkpoint`."""

    spark: SparkSession
    source: Files
    checkpoint: CheckpointPlace

    def prefix(self, committed: int, planned: int) -> Prefix:
        """The prefix up to those batches, limited to files that still exist.

        Raises StreamgaugeError when the query has read another source or the checkpoint is damaged.
        """
        found = source_files(self.checkpoint.folder)
        batches = tuple(batch for batch in known_batches(self.checkpoint) if batch.number <= planned)
        if any(FILES not in batch.ends for batch in batches if batch.ends) or any(
            not Path(file.path).is_relative_to(self.source.folder) for file in found
        ):
            msg = f"the query has read another source than {self.source.name}; set STREAMGAUGE_NEST_SOURCE to the value of that run, or unset it for topic nest-logs"
            raise StreamgaugeError(msg)
        ends, planned_ends = (
            batch_numbered(number, batches, self.checkpoint.folder).ends.get(FILES, 0) if number >= 0 else 0
            for number in (committed, planned)
        )
        taken = [file for file in found if file.entry < planned_ends]
        modified = {file.path: _modified_ms(file.path) for file in taken}
        starts = {_partition(file): 0 if modified[file.path] is not None else END for file in taken}
        of_committed = {_partition(file): END if file.entry < ends else 0 for file in taken}
        gone = [path for path, now in modified.items() if now is None]
        changed = [file.path for file in taken if modified[file.path] not in {None, file.modified_ms}]
        problems = (
            (gone, "no longer there: what came of them cannot be checked"),
            (changed, "changed since: the query has read what they held before"),
        )
        return Prefix(
            committed,
            planned,
            first={},
            starts=starts,
            ends=of_committed,
            planned_ends={_partition(file): END for file in taken},
            batches=_by_file(batches, taken),
            records=self.between(starts, of_committed).where(f"{PROBLEM} IS NULL").count(),
            is_cut=bool(gone),
            is_of_source=F.col("topic").startswith(f"{self.source.name}/"),
            notes=[f"{len(paths)} files that were read are {what} ({first_of(paths)})" for paths, what in problems if paths],
        )

    def between(self, starts: Offsets, ends: Offsets) -> DataFrame:
        """The lines of each file from `starts` up to, not including, `ends`. Columns: those of sources.kafka.RECORD, and PROBLEM."""
        ranges = {which: (starts.get(which, 0), end) for which, end in ends.items() if starts.get(which, 0) < end}
        found = [file for file in source_files(self.checkpoint.folder) if _partition(file) in ranges]
        records = records_of(self.spark, {file.path: file.modified_ms for file in found})
        if len(ranges) == 1:
            ((start, end),) = ranges.values()
            return records.where(F.col("offset").between(start, end - 1))
        return records

    def unknown_files(self, rows: DataFrame) -> list[str]:
        """A line that names the files in `rows` that the query has never read. Empty if there are none."""
        known = {_partition(file)[0] for file in source_files(self.checkpoint.folder)}
        unknown = sorted(row.topic for row in rows.select("topic").distinct().collect() if row.topic is not None and row.topic not in known)
        return [f"rows are of {len(unknown)} files that the query has not read ({first_of(unknown)})"] if unknown else []


def _by_file(batches: Sequence[Batch], taken: Sequence[SourceFile]) -> tuple[Batch, ...]:
    """The batches, each with the files that it was the first to read."""
    by_entry: dict[int, list[SourceFile]] = {}
    for file in taken:
        by_entry.setdefault(file.entry, []).append(file)
    found, before = [], 0
    for batch in batches:
        end = batch.ends.get(FILES, before)
        files = [file for entry in range(before, end) for file in by_entry.get(entry, [])]
        found.append(Batch(batch.number, {_partition(file): END for file in files}, batch.watermark_ms))
        before = end
    return tuple(found)


def _partition(file: SourceFile) -> Partition:
    return topic_of(file.path), 0


def _modified_ms(path: str) -> int | None:
    try:
        return Path(path).stat().st_mtime_ns // 1_000_000
    except OSError:
        return None
