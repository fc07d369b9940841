"""The range of records that a query has read: which of them it has committed, and which its topic still has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

from audit.audited import Facts
from audit.reading.checkpoints import between_batches
from audit.reading.files import CHANGED, END, GONE, SCHEME, SourceFile, lines_of, source_files
from audit.time_range import TimeRange, ms_of
from audit.verdicts.comparison import MOST_SHOWN, Kind
from audit.verdicts.verdict import RowCounts, Verdict
from contract.checkpoints.contents import FILES, Batch, Checkpoint, Offsets, known_batches
from contract.checkpoints.names import REAL_TIME, CheckpointPlace
from infrastructure import durations
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.cluster import KafkaCluster
from infrastructure.kafka.topic_ends import first_and_end_offsets, offsets_at, partitions_by_topic
from infrastructure.settings import Settings

T = TypeVar("T")


class Result(Protocol):
    """What a query writes, and where."""

    @property
    def query(self) -> str:
        """The query's name."""

    @property
    def sink(self) -> str:
        """Where it writes."""

    @property
    def facts(self) -> Facts:
        """What is taken from its source."""


@dataclass(frozen=True)
class ReadRange(Generic[T]):
    """The records that a query has read, by partition: offsets, and the batches that read them.

    committed, planned: the numbers of the last batches. sink_state: what its sink held then, as the end offsets of its topic. batches: in order.
    first_offsets: where the query began. retained_offsets: where the records begin that its source still has. committed_ends: where the last
    committed batch ends. ends: where the batch under way ends, or else the last committed one. files: those that it has read, by the
    topic of their records. file_notes: lines for the user. is_part: whether `first_offsets` and `ends` are those of a part of these records.
    """

    place: CheckpointPlace
    committed: int
    planned: int
    sink_state: T
    batches: Sequence[Batch]
    first_offsets: Offsets
    retained_offsets: Offsets
    committed_ends: Offsets
    ends: Offsets
    files: Mapping[str, SourceFile] = field(default_factory=dict)
    file_notes: Sequence[str] = ()
    is_part: bool = False

    @property
    def topics(self) -> set[str]:
        return {topic for topic, _ in self.ends}

    @cached_property
    def starts(self) -> Offsets:
        """Where the records begin that the source still has."""
        return {
            partition: min(max(self.first_offsets.get(partition, 0), self.retained_offsets[partition]), end)
            for partition, end in self.ends.items()
        }

    @property
    def truncated(self) -> dict[tuple[str, int], int]:
        """The partitions that have lost records, with their first offset now."""
        return {partition: start for partition, start in self.starts.items() if start > self.first_offsets.get(partition, 0)}

    @cached_property
    def records(self) -> int:
        """How many records of the committed batches the source still has."""
        counts = {partition: max(end - self.starts[partition], 0) for partition, end in self.committed_ends.items()}
        if not self.files:
            return sum(counts.values())
        return sum(line.problem is None for (topic, _), count in counts.items() if count for line in lines_of(self.files[topic].path))

    def watermark_ms(self, number: int) -> int:
        """The watermark by which batch `number` finalizes windows; 0 if there is no such batch."""
        return next((batch.watermark_ms for batch in reversed(self.batches) if batch.number == number), 0)

    def since(self, time_ms: int, delay: str, skew: str) -> "ReadRange[T]":
        """Leaves out the first batches, all of whose events are before that time.

        The watermark after a batch is at least the latest event time so far, minus its delay. With a watermark for each partition, an idle one
        can hold it back by the partition skew; in real-time mode, by any time, so that all batches stay.
        """
        if self.place.name.mode == REAL_TIME:
            return self
        skew_s = durations.seconds(skew, "STREAMGAUGE_PARTITION_SKEW") if Checkpoint(self.place.folder).sources != 1 else 0
        margin_ms = round((durations.seconds(delay, "watermark") + skew_s) * 1000)
        first_offsets = dict(self.first_offsets)
        for batch, after in pairwise(self.batches):
            if after.watermark_ms + margin_ms >= time_ms:
                break
            first_offsets |= batch.ends
        return replace(self, first_offsets=first_offsets)

    def until(self, time_ms: int) -> "ReadRange[T]":
        """Leaves out the last batches, in which all events up to that time are too late."""
        needed, watermark_ms = dict(self.first_offsets), 0
        for batch in self.batches:
            if watermark_ms >= time_ms:
                break
            needed |= batch.ends
            watermark_ms = batch.watermark_ms

        def limited(ends: Offsets) -> Offsets:
            return {partition: min(end, needed.get(partition, 0)) for partition, end in ends.items()}

        return replace(self, ends=limited(self.ends), committed_ends=limited(self.committed_ends))

    def at_times(self, span: TimeRange, kafka: KafkaCluster) -> "ReadRange[T]":
        """Leaves the records whose Kafka timestamps are within the span. Of files, those that were changed within it."""

        def offsets_of(time: datetime | None) -> Mapping[tuple[str, int], int | None]:
            if time is None:
                return {}
            if self.files:
                return {partition: 0 if self.files[partition[0]].modified_ms >= ms_of(time) else END for partition in self.ends}
            return offsets_at(kafka, self.ends, ms_of(time))

        starts, ends = offsets_of(span.start), offsets_of(span.end)
        later = {partition: self.ends[partition] if start is None else start for partition, start in starts.items()}
        first_offsets = {**self.first_offsets, **{partition: start for partition, start in later.items() if start > self.starts[partition]}}

        def limited(offsets: Offsets) -> Offsets:
            return {partition: end if (limit := ends.get(partition)) is None else min(end, limit) for partition, end in offsets.items()}

        return replace(
            self, first_offsets=first_offsets, ends=limited(self.ends), committed_ends=limited(self.committed_ends), is_part=True
        )

    def has(self, partition: tuple[str, int], offset: int) -> bool:
        """Whether the query has read the record, and the source still has it."""
        return self.starts.get(partition, 0) <= offset < self.ends.get(partition, 0)

    def leaves_out(self, partition: tuple[str, int], offset: int) -> bool:
        """Whether a record is outside the part of the range that this is."""
        return self.is_part and not self.first_offsets.get(partition, 0) <= offset < self.ends.get(partition, 0)

    @property
    def notes(self) -> list[str]:
        """A line for each partition that has lost records."""
        return list(self.file_notes) or [
            f"retention has cut {topic}-{number}: the query began at offset {self.first_offsets.get((topic, number), 0):,}, the topic now begins at {start:,}"
            for (topic, number), start in sorted(self.truncated.items())
        ]

    def verdict(self, result: "Result", counts: Mapping[Kind, int], notes: Sequence[str] = (), **more: Any) -> Verdict:  # noqa: ANN401 - fields of Verdict
        """The verdict on a result, whose rows are of these kinds. It is not checked if its topic has another prefix."""
        query, source = result.query, result.facts.source
        if others := sorted(topic for topic in self.topics if topic != source and not topic.startswith(SCHEME)):
            problem = (
                f"its checkpoint is of topic {', '.join(others)}, and not of {source}: set STREAMGAUGE_TOPIC_PREFIX as it was, "
                f"or recount from the start (`streamgauge reset {query}`)"
            )
            return Verdict(query, result.sink, problem=problem)
        return Verdict(query, result.sink, self.committed, self.records, RowCounts.of(counts), notes=[*self.notes, *notes], **more)

    def newest_lost_ms(self, delay: str, skew: str) -> int | None:
        """An upper bound of the event times of the lost records, in ms since 1970. 0 when none is lost, None when unknown.

        The watermark after a batch is at least the latest event time so far, minus its delay, minus the partition skew.
        """
        if not self.truncated:
            return 0
        if self.place.name.mode == REAL_TIME:  # nothing bounds how far an idle partition holds the watermark back
            return None
        batches, truncated = iter(self.batches), set(self.truncated)
        last = None
        while truncated and (last := next(batches, None)):
            truncated -= {partition for partition, end in last.ends.items() if partition in truncated and end >= self.starts[partition]}
        if last is None:
            return None
        after = next(batches, None)
        watermark_ms = after.watermark_ms if after else Checkpoint(self.place.folder).watermark_after(last.number)
        margin = durations.seconds(delay, "watermark") + durations.seconds(skew, "STREAMGAUGE_PARTITION_SKEW")
        return None if watermark_ms is None else watermark_ms + round(margin * 1000)


def read_range_of(
    place: CheckpointPlace,
    read_sink: Callable[[], T],
    settings: Settings,
    batches_of: Callable[[CheckpointPlace], Sequence[Batch]] = known_batches,
) -> ReadRange[T]:
    """The range of the query with the checkpoint at `place`. read_sink: finds what its sink holds, as the end offsets of its topic.

    Raises StreamgaugeError when the topic holds fewer records than the query has read, that is, it was recreated.
    """
    is_real_time = place.name.mode == REAL_TIME
    committed, planned, sink_state = between_batches(place, read_sink)
    batches = [batch for batch in batches_of(place) if batch.number <= (committed if is_real_time else planned)]
    has_offsets = is_real_time or any(FILES not in batch.ends for batch in batches)
    first_offsets = Checkpoint(place.folder).first_offsets() if has_offsets else {}
    if is_real_time:
        planned, batches = committed + 1, [*batches, _unplanned(place, batches, committed, settings)]
    ends, committed_ends = (_ends_of(place, number, batches, first_offsets) for number in (planned, committed))
    if FILES in ends:
        return _of_files(ReadRange(place, committed, planned, sink_state, batches, first_offsets, {}, committed_ends, ends), settings)
    offsets = first_and_end_offsets(settings.kafka, ends)
    for (topic, number), end in ends.items():
        if offsets[topic, number][1] < end:
            msg = f"topic {topic} holds {offsets[topic, number][1]} records in partition {number}, and {end} were taken from it: the topic was recreated. Delete {place.folder} to recount from the start"
            raise StreamgaugeError(msg)
    retained_offsets = {partition: offsets[partition][0] for partition in ends}
    return ReadRange(place, committed, planned, sink_state, batches, first_offsets, retained_offsets, committed_ends, ends)


def _of_files(listed: ReadRange[T], settings: Settings) -> ReadRange[T]:
    """The range of a query that reads files, of one that has numbers of listings for offsets: each file is a partition."""
    ends, committed_ends = listed.ends[FILES], listed.committed_ends.get(FILES, 0)
    files = [file for file in source_files(listed.place, settings) if file.entry < ends]
    by_entry: dict[int, list[SourceFile]] = {}
    for file in files:
        by_entry.setdefault(file.entry, []).append(file)
    batches, start = [], 0
    for batch in listed.batches:
        end = batch.ends.get(FILES, start)
        read = [file for entry in range(start, end) for file in by_entry.get(entry, ())]
        batches.append(replace(batch, ends={(file.topic, 0): END for file in read}))
        start = end
    problems = {file.topic: file.problem() for file in files}
    return replace(
        listed,
        batches=batches,
        first_offsets={},
        retained_offsets={(topic, 0): END if problem == GONE else 0 for topic, problem in problems.items()},
        committed_ends={(file.topic, 0): END if file.entry < committed_ends else 0 for file in files},
        ends={(file.topic, 0): END for file in files},
        files={file.topic: file for file in files},
        file_notes=[
            f"{len(topics)} files that were read are {what} ({', '.join(topic.removeprefix(SCHEME) for topic in topics[:MOST_SHOWN])})"
            for what in (GONE, CHANGED)
            if (topics := [topic for topic, problem in problems.items() if problem == what])
        ],
    )


def _ends_of(place: CheckpointPlace, number: int, batches: Sequence[Batch], first_offsets: Offsets) -> Offsets:
    if number < 0:
        return first_offsets
    for batch in reversed(batches):
        if batch.number == number:
            return batch.ends
    msg = f"{place.folder} has no offsets of batch {number}, which it has committed: it is damaged; restore it, or delete it to recount from the start"
    raise StreamgaugeError(msg)


def _unplanned(place: CheckpointPlace, batches: Sequence[Batch], committed: int, settings: Settings) -> Batch:
    """A batch with all that the topic holds: in real-time mode, a batch has no plan until it ends, and may read partitions that none has read."""
    read = {partition for batch in batches for partition in batch.ends} or Checkpoint(place.folder).first_offsets().keys()
    numbers = partitions_by_topic(settings.kafka)
    partitions = [(topic, number) for topic in {topic for topic, _ in read} for number in numbers.get(topic, ())]
    ends = {partition: end for partition, (_, end) in first_and_end_offsets(settings.kafka, partitions).items()}
    return Batch(committed + 1, ends, Checkpoint(place.folder).watermark_after(committed) or 0)
