"""Which batch read a record, and by which watermark it dropped rows as too late."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import sleep
from typing import TypeVar

from contract.checkpoints.contents import Batch, Checkpoint, Offsets
from contract.checkpoints.names import CheckpointPlace
from infrastructure.errors import StreamgaugeError

_LOOKS, _SECONDS_BETWEEN = 100, 0.02
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records of one partition from offset `start` up to, not including, `end`, of which one rule tells whether they are too late.

    A record is too late if its event time, in ms, is not after `late_until_ms`, and in time if it is after `in_time_after_ms`. The two are equal
    unless batches are unknown. is_ahead: whether its batch is planned and not committed.
    """

    topic: str
    partition: int
    start: int
    end: int
    late_until_ms: int
    in_time_after_ms: int
    is_ahead: bool = False


def between_batches(place: CheckpointPlace, read_sink: Callable[[], T]) -> tuple[int, int, T]:
    """The last batch committed before the sink was read, the last one planned after it, at most one apart, and what the sink held."""
    checkpoint = Checkpoint(place.folder)
    for _ in range(_LOOKS):
        committed = checkpoint.last_committed
        sink_state = read_sink()
        planned = max([*checkpoint.planned, committed])
        if planned <= committed + 1:
            return committed, planned, sink_state
        sleep(_SECONDS_BETWEEN)
    msg = f"batches of {place.name} finish faster than Kafka's offsets can be read; verify again when there is less load"
    raise StreamgaugeError(msg)


def stretches(first_offsets: Offsets, batches: Sequence[Batch], committed: int) -> list[Stretch]:
    """The stretches of all records from `first_offsets` to the end of the last batch. Batches of equal watermark share one."""
    by_partition: dict[tuple[str, int], list[Stretch]] = {}
    before, next_offsets = Batch(-1, first_offsets, 0), dict(first_offsets)
    for batch in batches:
        is_next, is_ahead = batch.number == before.number + 1, batch.number > committed
        late, in_time = before.watermark_ms, before.watermark_ms if is_next else batch.watermark_ms
        for partition, end in batch.ends.items():
            start = next_offsets.get(partition, 0)
            if end > start:
                runs = by_partition.setdefault(partition, [])
                if runs and (runs[-1].late_until_ms, runs[-1].in_time_after_ms, runs[-1].is_ahead) == (late, in_time, is_ahead):
                    start = runs.pop().start
                runs.append(Stretch(*partition, start, end, late, in_time, is_ahead))
                next_offsets[partition] = end
        before = batch
    return [stretch for runs in by_partition.values() for stretch in runs]
