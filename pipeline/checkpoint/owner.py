"""The owner of the checkpoints in an object store. On disk, locks keep out a second pipeline, but only on one machine."""

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.paths import text_of, write_new

OWNER = "owner"
"""The object next to the checkpoints that names their owner (settings.owner)."""


def own(settings: Settings) -> None:
    """Makes settings.owner the owner of the checkpoints at CHECKPOINT_URI, unless they have one.

    Raises StreamgaugeError when it is another one, and StoreAway when the object store cannot be reached.
    """
    if settings.checkpoint_uri:
        write_new(settings.checkpoints / OWNER, settings.owner)
        # Needed even after a successful write: some stores accept the second of two concurrent creations as an update.
        check_owner(settings)


def check_owner(settings: Settings) -> None:
    """Raises as `own` does, but writes nothing."""
    if not settings.checkpoint_uri:
        return
    noted_in = settings.checkpoints / OWNER
    noted = text_of(noted_in)
    if noted not in {None, settings.owner}:
        msg = f"the checkpoints in {settings.checkpoints} belong to {noted}, and this is {settings.owner}: two pipelines that use them at the same time would destroy each other's counts. If that one has ended for good, delete {noted_in} and start again; if it is this one under another name, set STREAMGAUGE_OWNER={noted}; otherwise choose another folder"
        raise StreamgaugeError(msg)
