"""To whom the checkpoints in an object store belong. On a disk, locks keep a second pipeline out; they reach no further than a machine."""

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.paths import text_of, write_new

OWNER = "owner"
"""The object beside the checkpoints that names him, as settings.owner does."""


def own(settings: Settings) -> None:
    """Notes that the checkpoints of CHECKPOINT_URI belong to settings.owner, unless they belong to somebody already.

    Raises StreamgaugeError when that is another one, and StoreAway when the object store does not answer.
    """
    if settings.checkpoint_uri:
        write_new(settings.checkpoints / OWNER, settings.owner)
        # In any case: there are stores that take the second of two new objects for a change of the first.
        check_owner(settings)


def check_owner(settings: Settings) -> None:
    """Raises as `own` does, and notes nothing."""
    if not settings.checkpoint_uri:
        return
    noted_in = settings.checkpoints / OWNER
    noted = text_of(noted_in)
    if noted not in {None, settings.owner}:
        msg = f"the checkpoints in {settings.checkpoints} belong to {noted}, and this is {settings.owner}: two that use them at the same time would each destroy what the other has counted. If that one has ended for good, delete {noted_in} and start again; if it is this one under a new name, set STREAMGAUGE_OWNER={noted}; otherwise take another folder"
        raise StreamgaugeError(msg)
