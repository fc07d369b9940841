"""The records that a query has committed, and which of them its topic still has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from audit.audited import Facts
from audit.reading.checkpoints import between_batches
from audit.reading.files import END, SCHEME, SourceFile, lines_of, path_of_topic, source_files
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
class Prefix(Generic[T]):
    """The records that a query has read, and what its topic held then.

    committed, planned: the last batches. seen: what was found of what it writes, as its end. known: the batches, in order. first: where the
    query began. kept: the first offsets of what its source has. committed_ends: where the last committed batch ends. ends: where the batch
    under way ends, or else the last committed one. modified_ms: of files that it has read, by the topic of their records. is_part: whether
    `first` and `ends` are those of a part of these records.
    """

    place: CheckpointPlace
    committed: int
    planned: int
    seen: T
    known: Sequence[Batch]
    first: Offsets
    kept: Offsets
    committed_ends: Offsets
    ends: Offsets
    modified_ms: Mapping[str, int] = field(default_factory=dict)
    of_files: Sequence[str] = ()
    is_part: bool = False

    @property
    def topics(self) -> set[str]:
        return {topic for topic, _ in self.ends}

    @cached_property
    def starts(self) -> Offsets:
        """Where the records begin that are left."""
        return {which: min(max(self.first.get(which, 0), self.kept[which]), end) for which, end in self.ends.items()}

    @property
    def cuts(self) -> dict[tuple[str, int], int]:
        """The partitions that have lost records, and where each begins now."""
        return {which: start for which, start in self.starts.items() if start > self.first.get(which, 0)}

    @cached_property
    def records(self) -> int:
        """How many records of the committed batches are left."""
        left = {which: max(end - self.starts[which], 0) for which, end in self.committed_ends.items()}
        if not self.modified_ms:
            return sum(left.values())
        return sum(line.problem is None for (topic, _), count in left.items() if count for line in lines_of(path_of_topic(topic)))

    def watermark_ms(self, number: int) -> int:
        """The watermark by which batch `number` finalizes windows; 0 if there is no such batch."""
        return next((batch.watermark_ms for batch in reversed(self.known) if batch.number == number), 0)

    def since(self, time_ms: int, delay: str, skew: str) -> "Prefix[T]":
        """Without the first batches, all of whose events are before that time.

        The watermark after a batch is at least the latest event time so far, minus its delay. With a watermark for each partition, an idle one
        can hold it back by the partition skew; in real-time mode, by any time, so that all batches stay.
        """
        if self.place.name.mode == REAL_TIME:
            return self
        skew_s = durations.seconds(skew, "STREAMGAUGE_PARTITION_SKEW") if Checkpoint(self.place.folder).sources != 1 else 0
        margin_ms = round((durations.seconds(delay, "watermark") + skew_s) * 1000)
        first = dict(self.first)
        for batch, after in pairwise(self.known):
            if after.watermark_ms + margin_ms >= time_ms:
                break
            first |= batch.ends
        return replace(self, first=first)

    def until(self, time_ms: int) -> "Prefix[T]":
        """Without the last batches, in which all events up to that time are too late."""
        reached, watermark_ms = dict(self.first), 0
        for batch in self.known:
            if watermark_ms >= time_ms:
                break
            reached |= batch.ends
            watermark_ms = batch.watermark_ms

        def cut(ends: Offsets) -> Offsets:
            return {which: min(end, reached.get(which, 0)) for which, end in ends.items()}

        return replace(self, ends=cut(self.ends), committed_ends=cut(self.committed_ends))

    def at_times(self, span: TimeRange, kafka: KafkaCluster) -> "Prefix[T]":
        """From the first record that Kafka's timestamps have at the start of the span, up to the first at its end. Of files, those changed within it."""

        def at(time: datetime | None) -> Mapping[tuple[str, int], int | None]:
            if time is None:
                return {}
            if self.modified_ms:
                return {which: 0 if self.modified_ms[which[0]] >= ms_of(time) else END for which in self.ends}
            return offsets_at(kafka, self.ends, ms_of(time))

        starts, ends = at(span.start), at(span.end)
        later = {which: self.ends[which] if start is None else start for which, start in starts.items()}
        first = {**self.first, **{which: start for which, start in later.items() if start > self.starts[which]}}

        def cut(own: Offsets) -> Offsets:
            return {which: end if (found := ends.get(which)) is None else min(end, found) for which, end in own.items()}

        return replace(self, first=first, ends=cut(self.ends), committed_ends=cut(self.committed_ends), is_part=True)

    def leaves_out(self, which: tuple[str, int], offset: int) -> bool:
        """Whether the record is outside the part that this is."""
        return self.is_part and not self.first.get(which, 0) <= offset < self.ends.get(which, 0)

    @property
    def notes(self) -> list[str]:
        """A line for each partition that has lost records."""
        return list(self.of_files) or [
            f"retention has cut {topic}-{number}: the query began at offset {self.first.get((topic, number), 0):,}, the topic now begins at {start:,}"
            for (topic, number), start in sorted(self.cuts.items())
        ]

    def verdict(self, one: "Result", counts: Mapping[Kind, int], notes: Sequence[str] = (), **more: Any) -> Verdict:  # noqa: ANN401 - fields of Verdict
        """The verdict on a result, whose rows are of these kinds: not checked, if they are of a topic with another prefix."""
        if others := sorted(topic for topic in self.topics if topic != one.facts.source and not topic.startswith(SCHEME)):
            problem = (
                f"its checkpoint is of topic {', '.join(others)}, and not of {one.facts.source}: set STREAMGAUGE_TOPIC_PREFIX as it was, "
                f"or recount from the start (`streamgauge reset {one.query}`)"
            )
            return Verdict(one.query, one.sink, problem=problem)
        return Verdict(one.query, one.sink, self.committed, self.records, RowCounts.of(counts), notes=[*self.notes, *notes], **more)

    def newest_cut_ms(self, delay: str, skew: str) -> int | None:
        """An upper bound of the event times of the lost records, in ms since 1970. 0 when none is lost, None when unknown.

        The watermark after a batch is at least the latest event time so far, minus its delay, minus the partition skew.
        """
        if not self.cuts:
            return 0
        if self.place.name.mode == REAL_TIME:  # nothing bounds how far an idle partition holds the watermark back
            return None
        left, cut = iter(self.known), set(self.cuts)
        last = None
        while cut and (last := next(left, None)):
            cut -= {which for which, end in last.ends.items() if which in cut and end >= self.starts[which]}
        if last is None:
            return None
        after = next(left, None)
        watermark_ms = after.watermark_ms if after else Checkpoint(self.place.folder).watermark_after(last.number)
        margin = durations.seconds(delay, "watermark") + durations.seconds(skew, "STREAMGAUGE_PARTITION_SKEW")
        return None if watermark_ms is None else watermark_ms + round(margin * 1000)


def prefix_of(
    place: CheckpointPlace,
    look: Callable[[], T],
    settings: Settings,
    batches: Callable[[CheckpointPlace], Sequence[Batch]] = known_batches,
) -> Prefix[T]:
    """The prefix of the query with the checkpoint at `place`. look: finds what the query writes, as the ends of its topic.

    Raises StreamgaugeError when the topic holds fewer records than the query has read, that is, it was recreated.
    """
    is_real_time = place.name.mode == REAL_TIME
    committed, planned, seen = between_batches(place, look)
    known = [batch for batch in batches(place) if batch.number <= (committed if is_real_time else planned)]
    has_offsets = is_real_time or any(FILES not in batch.ends for batch in known)
    first = Checkpoint(place.folder).first_offsets() if has_offsets else {}
    if is_real_time:
        planned, known = committed + 1, [*known, _with_the_rest(place, known, committed, settings)]
    ends, committed_ends = _ends_of(place, planned, known, first), _ends_of(place, committed, known, first)
    if FILES in ends:
        return _of_files(Prefix(place, committed, planned, seen, known, first, {}, committed_ends, ends))
    held = first_and_end_offsets(settings.kafka, ends)
    for (topic, number), end in ends.items():
        if held[topic, number][1] < end:
            msg = f"topic {topic} holds {held[topic, number][1]} records in partition {number}, and {end} were taken from it: the topic was recreated. Delete {place.folder} to recount from the start"
            raise StreamgaugeError(msg)
    kept = {which: held[which][0] for which in ends}
    return Prefix(place, committed, planned, seen, known, first, kept, committed_ends, ends)


def _of_files(listed: Prefix[T]) -> Prefix[T]:
    """The prefix of a query that reads files, of one with listings for offsets: each file is a partition."""
    ends, committed_ends = listed.ends[FILES], listed.committed_ends.get(FILES, 0)
    files = [file for file in source_files(listed.place) if file.entry < ends]
    by_entry: dict[int, list[SourceFile]] = {}
    for file in files:
        by_entry.setdefault(file.entry, []).append(file)
    known, reached = [], 0
    for batch in listed.known:
        end = batch.ends.get(FILES, reached)
        read = [file for entry in range(reached, end) for file in by_entry.get(entry, ())]
        known.append(replace(batch, ends={(file.topic, 0): END for file in read}))
        reached = end
    modified = {file: _modified_ms(file.path) for file in files}
    gone = [file.path for file, now in modified.items() if now is None]
    changed = [file.path for file, now in modified.items() if now not in {None, file.modified_ms}]
    problems = (
        (gone, "no longer there: what came of them cannot be checked"),
        (changed, "changed since: the query has read what they held before"),
    )
    return replace(
        listed,
        known=known,
        first={},
        kept={(file.topic, 0): END if now is None else 0 for file, now in modified.items()},
        committed_ends={(file.topic, 0): END if file.entry < committed_ends else 0 for file in files},
        ends={(file.topic, 0): END for file in files},
        modified_ms={file.topic: file.modified_ms for file in files},
        of_files=[
            f"{len(paths)} files that were read are {what} ({', '.join(map(str, paths[:MOST_SHOWN]))})" for paths, what in problems if paths
        ],
    )


def _ends_of(place: CheckpointPlace, number: int, known: Sequence[Batch], first: Offsets) -> Offsets:
    if number < 0:
        return first
    for batch in reversed(known):
        if batch.number == number:
            return batch.ends
    msg = f"{place.folder} has no offsets of batch {number}, which it has committed: it is damaged; restore it, or delete it to recount from the start"
    raise StreamgaugeError(msg)


def _modified_ms(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None


def _with_the_rest(place: CheckpointPlace, known: Sequence[Batch], committed: int, settings: Settings) -> Batch:
    """A batch with all that the topic holds: in real-time mode, a batch has no plan until it ends, and may read partitions that none has read."""
    read = {which for batch in known for which in batch.ends} or Checkpoint(place.folder).first_offsets().keys()
    numbers = partitions_by_topic(settings.kafka)
    partitions = [(topic, number) for topic in {topic for topic, _ in read} for number in numbers.get(topic, ())]
    ends = {which: end for which, (_, end) in first_and_end_offsets(settings.kafka, partitions).items()}
    return Batch(committed + 1, ends, Checkpoint(place.folder).watermark_after(committed) or 0)
