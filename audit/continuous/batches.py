"""The batches of a query, without those that no longer matter: a long history is read once, at the start."""

from collections.abc import Sequence

from contract.checkpoints.contents import Batch, Checkpoint, Offsets, known_batches
from contract.checkpoints.names import CheckpointPlace

_AGAIN = 2
"""So many of the newest batches are read again each time: Spark may have planned them anew. One more is kept, to know that none is missing."""


class Batches:
    """The batches of one query, from one that `forget` has left first."""

    def __init__(self) -> None:
        self.known: list[Batch] = []
        self.has_forgotten = False

    def of(self, place: CheckpointPlace) -> Sequence[Batch]:
        """Those that are known, and those that were planned since the last call."""
        checkpoint, kept = Checkpoint(place.folder), self.known[:-_AGAIN]
        last = kept[-1].number if kept else -1
        later = [batch for number in checkpoint.planned if number > last and (batch := checkpoint.batch(number))]
        if kept and later and later[0].number == last + 1:
            self.known = [*kept, *later]
        else:
            self.known, self.has_forgotten = known_batches(place), False
        return self.known

    def forget(self, offsets: Offsets, committed: int) -> None:
        """Forgets the batches before the last one of which no record from these offsets on is, and neither the committed one."""
        number = max(
            (
                number
                for number, batch in enumerate(self.known)
                if batch.number <= committed and all(batch.ends.get(which, 0) <= offset for which, offset in offsets.items())
            ),
            default=0,
        )
        self.known = self.known[(first := min(number, max(len(self.known) - _AGAIN - 1, 0))) :]
        self.has_forgotten |= first > 0
