"""Which process and which owner use a checkpoint, and whether it belongs to the query's source.

All functions raise StoreUnavailable when the object store of the checkpoints cannot be reached.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from contract.checkpoints.contents import Checkpoint
from contract.checkpoints.names import CheckpointPlace, remains_of
from infrastructure.errors import StreamgaugeError
from infrastructure.process.locks import alone
from infrastructure.process.waiting import has_ended
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, text_of, write_new, write_whole
from pipeline.monitoring.failures import records_gone
from pipeline.sources.files import SCHEME

PREVIOUS_DRIVER_SECONDS = 15
OWNER = "owner"
"""The object next to the checkpoints that names their owner (settings.owner)."""
RESET = ".reset"
"""The extension of a file next to a query's checkpoint while a reset deletes both."""


class OtherOwner(StreamgaugeError):  # noqa: N818
    """The checkpoints belong to another pipeline."""

    def __init__(self, settings: Settings, owner: str) -> None:
        super().__init__(
            f"the checkpoints in {settings.checkpoints} belong to {owner}, and this is {settings.owner}: two pipelines that use them at the "
            f"same time would destroy each other's counts. If that one has ended for good, delete {settings.checkpoints / OWNER} and start "
            f"again; if it is this one under another name, set STREAMGAUGE_OWNER={owner}; otherwise choose another folder"
        )


class OtherSource(StreamgaugeError):  # noqa: N818
    """A checkpoint belongs to another source than the query's."""

    def __init__(self, query: str, had: Iterable[str], has: Iterable[str]) -> None:
        of_files = any(source.startswith(SCHEME) for source in (*had, *has))
        super().__init__(
            f"query {query} has read {_shown(had)} and is now to read {_shown(has)}; a checkpoint is of one source: set "
            f"{'STREAMGAUGE_NEST_SOURCE' if of_files else 'STREAMGAUGE_TOPIC_PREFIX'} as it was, or recount from the start (`streamgauge reset {query}`)"
        )


@contextmanager
def locked(place: CheckpointPlace, jvm_pid: int | None = None) -> Iterator[None]:
    """Locks the checkpoint for this process. jvm_pid: the process id of the Spark driver that will use it, if any.

    Raises InUse immediately when another process holds it. A killed process does not, but its Spark driver continues for a moment:
    raises StreamgaugeError when that does not end.
    """
    note, driver = place.note(".driver"), place.driver
    pid = "" if driver is None else f" (its Spark driver is pid {driver.pid})"
    refusal = f"query {place.name.query} is already running in another process{pid}, which holds {place.folder}; stop it first"
    with alone(place.note(".lock"), refusal):
        driver = place.driver
        if driver is not None and driver.pid != jvm_pid and not has_ended(driver, PREVIOUS_DRIVER_SECONDS):
            msg = f"the Spark driver of an earlier run (pid {driver.pid}) is still running; stop it, then start again"
            raise StreamgaugeError(msg)
        if jvm_pid is not None:
            place.note_driver(jvm_pid)
        try:
            yield
        finally:
            note.unlink(missing_ok=True)


def interrupted_resets(query: str, settings: Settings) -> list[StoragePath]:
    """The marks of resets of the query that have not ended."""
    return [path for path in remains_of(query, settings) if path.suffix == RESET]


def check_reset(query: str, settings: Settings) -> None:
    """Raises StreamgaugeError if a reset of the query was interrupted."""
    if interrupted_resets(query, settings):
        msg = f"a reset of {query} was interrupted, and parts of its results may be gone; complete it: `streamgauge reset {query}`"
        raise StreamgaugeError(msg)


def check_source(place: CheckpointPlace, ids: Mapping[str, str], settings: Settings) -> None:
    """Records which source the offsets belong to. ids: the ids of its topics, by name; of files, `files:/folder` without an id.

    Raises StreamgaugeError when the checkpoint belongs to another source. Also when a topic's id has changed, unless
    settings.fail_on_data_loss is off: Spark alone would not notice once the new topic holds as many records as the old one did.
    """
    query, old = place.name.query, _noted(place, ".topics")
    if other_sources := [name for name in old if name not in ids]:
        raise OtherSource(query, other_sources, ids)
    recreated = sorted(name for name, topic_id in ids.items() if old.get(name, topic_id) != topic_id)
    if recreated and settings.fail_on_data_loss:
        raise StreamgaugeError(records_gone(query, f"topic {', '.join(recreated)} was deleted and recreated"))
    _note(place, ".topics", old, ids)


def check_parameters(place: CheckpointPlace, parameters: Mapping[str, str | int]) -> None:
    """Records with which parameters of its transform a query counts. Raises StreamgaugeError when the checkpoint has a state with others."""
    query, old = place.name.query, _noted(place, ".parameters")
    if other := [name for name in old if old[name] != parameters.get(name, old[name])]:
        had, has = (" and ".join(f"{name} {values[name]!r}" for name in other) for values in (old, parameters))
        msg = f"query {query} has counted with {had} and is now to count with {has}; its table would hold both: change the setting back, or recount from the start (`streamgauge reset {query}`)"
        raise StreamgaugeError(msg)
    _note(place, ".parameters", old, parameters)


def _noted(place: CheckpointPlace, ending: str) -> dict[str, Any]:
    """What the file with that ending beside the checkpoint says of it; nothing of one that was deleted. Raises StreamgaugeError if it is damaged."""
    path = place.sidecar(ending)
    text = text_of(path)
    try:
        return dict(orjson.loads(text)) if text and Checkpoint(place.folder).planned else {}
    except (ValueError, TypeError) as error:
        msg = f"{path} is damaged ({error}); restore it from a copy, or delete it if source and settings of {place.name.query} are as they were"
        raise StreamgaugeError(msg) from error


def _note(place: CheckpointPlace, ending: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Adds what is new to that file. If nothing is, a restart needs no space for it on a full disk."""
    if (noted := {**old, **new}) != old:
        write_whole(place.sidecar(ending), orjson.dumps(noted).decode())


def claim(settings: Settings) -> None:
    """Makes settings.owner the owner of the checkpoints at CHECKPOINT_URI, unless they have one.

    On disk, locks keep out a second pipeline, but only on one machine.

    Raises StreamgaugeError when they have another owner, and StoreUnavailable when the object store cannot be reached.
    """
    if settings.checkpoint_uri:
        write_new(settings.checkpoints / OWNER, settings.owner)
        # Needed even after a successful write: some stores accept the second of two concurrent creations as an update.
        check_owner(settings)


def check_owner(settings: Settings) -> None:
    """Raises as `claim` does, but writes nothing."""
    if not settings.checkpoint_uri:
        return
    owner = text_of(settings.checkpoints / OWNER)
    if owner not in {None, settings.owner}:
        raise OtherOwner(settings, str(owner))


def _shown(sources: Iterable[str]) -> str:
    return ", ".join(name if name.startswith(SCHEME) else f"topic {name}" for name in sorted(sources))
