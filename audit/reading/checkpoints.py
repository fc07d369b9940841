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


def between_batches(place: CheckpointPlace, look: Callable[[], T]) -> tuple[int, int, T]:
    """The last batch committed before `look` and the last planned after it, at most one apart, and the result of `look`."""
    checkpoint = Checkpoint(place.folder)
    for _ in range(_LOOKS):
        committed = checkpoint.last_committed
        seen = look()
        planned = max([*checkpoint.planned, committed])
        if planned <= committed + 1:
            return committed, planned, seen
        sleep(_SECONDS_BETWEEN)
    msg = f"batches of {place.name} finish faster than Kafka's offsets can be read; verify again when there is less load"
    raise StreamgaugeError(msg)


def stretches(first: Offsets, known: Sequence[Batch], committed: int) -> list[Stretch]:
    """The stretches of all records from `first` to the end of the last batch. Batches of equal watermark share one."""
    found: dict[tuple[str, int], list[Stretch]] = {}
    before, reached = Batch(-1, first, 0), dict(first)
    for batch in known:
        is_next, is_ahead = batch.number == before.number + 1, batch.number > committed
        late, in_time = before.watermark_ms, before.watermark_ms if is_next else batch.watermark_ms
        for which, end in batch.ends.items():
            start = reached.get(which, 0)
            if end > start:
                own = found.setdefault(which, [])
                if own and (own[-1].late_until_ms, own[-1].in_time_after_ms, own[-1].is_ahead) == (late, in_time, is_ahead):
                    start = own.pop().start
                own.append(Stretch(*which, start, end, late, in_time, is_ahead))
                reached[which] = end
        before = batch
    return [stretch for own in found.values() for stretch in own]
