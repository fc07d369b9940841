"""Which process and which owner use a checkpoint, and whether it is one of the query's source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil
from filelock import FileLock, Timeout

from contract.errors import StreamgaugeError
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace, others_of_query
from contract.storage.paths import StoragePath, names_in, text_of, write_new, write_whole
from pipeline.query import Query
from pipeline.sources.files import SCHEME

PREVIOUS_DRIVER_SECONDS = 15
OWNER = "owner"
"""The object next to the checkpoints that names their owner (settings.owner)."""


@dataclass(frozen=True)
class CheckpointUse:
    """The use of one query's checkpoint. All methods raise StoreUnavailable when its object store cannot be reached."""

    place: CheckpointPlace

    @classmethod
    def of(cls, query: Query, settings: Settings) -> "CheckpointUse":
        """The checkpoint of the query's name, version and output mode."""
        return cls(query.checkpoint_name.place(settings))

    @property
    def query(self) -> str:
        """The query's name."""
        return self.place.name.query

    @property
    def folder(self) -> StoragePath:
        """The folder that Spark writes."""
        return self.place.folder

    @property
    def is_new(self) -> bool:
        """Whether no batch has been planned yet."""
        return not names_in(self.folder / "offsets")

    def of_other_versions(self, settings: Settings) -> list[str]:
        """Checkpoints of other versions of the query, in the same mode."""
        own = self.place.name
        return [str(other.name) for other in others_of_query(own, settings) if other.name.mode == own.mode]

    @property
    def is_locked(self) -> bool:
        """Whether a process holds the checkpoint. A killed process releases it at once, although its Spark driver continues for a moment."""
        if not self._lock_file.exists():
            return False
        try:
            with FileLock(self._lock_file, timeout=0):
                return False
        except Timeout:
            return True

    def lock(self, jvm_pid: int | None = None) -> FileLock:
        """Locks the checkpoint for this process until `unlock`. jvm_pid: of the Spark driver that will use it, if any.

        Raises StreamgaugeError immediately when another process holds it, or when the JVM of a killed process does not exit.
        """
        self.place.notes.mkdir(parents=True, exist_ok=True)
        lock, driver = FileLock(self._lock_file, timeout=0), self.place.driver
        try:
            lock.acquire()
        except Timeout as error:
            who = "" if driver is None else f" (its Spark driver is pid {driver.pid})"
            msg = f"query {self.query} is already running in another process{who}, which holds {self.folder}; stop it first, or use another STREAMGAUGE_HOME"
            raise StreamgaugeError(msg) from error
        if driver is not None and driver.pid != jvm_pid:
            try:
                driver.wait(PREVIOUS_DRIVER_SECONDS)
            except psutil.TimeoutExpired as error:
                msg = f"the Spark driver of an earlier run (pid {driver.pid}) is still running; stop it, then start again"
                raise StreamgaugeError(msg) from error
        if jvm_pid is not None:
            self._holder.write_text(str(jvm_pid))
        return lock

    def unlock(self, lock: FileLock) -> None:
        """Releases the checkpoint after its query has stopped."""
        self._holder.unlink(missing_ok=True)
        lock.release()

    @property
    def _lock_file(self) -> Path:
        return self.place.note(".lock")

    @property
    def _holder(self) -> Path:
        """The file with the Spark driver's pid. The driver of a killed process continues for a moment."""
        return self.place.note(".driver")

    def check_source(self, ids: Mapping[str, str], settings: Settings) -> None:
        """Records which source the offsets belong to. ids: of its topics, by name; or of the folder, as `files:/folder`.

        Raises StreamgaugeError when the checkpoint belongs to another source. Also when a topic's id has changed, unless
        settings.fail_on_data_loss is off: Spark alone would not notice once the new topic holds as many records as the old one did.
        """
        remembered = text_of(self.place.beside(".topics"))
        old = orjson.loads(remembered) if remembered and not self.is_new else {}
        if others := [name for name in old if name not in ids and any(one.startswith(SCHEME) for one in (name, *ids))]:
            msg = f"query {self.query} has read {_shown(others)} and is now to read {_shown(ids)}; a checkpoint is of one source: set STREAMGAUGE_NEST_SOURCE as it was, or recount from the start (`streamgauge reset {self.query}`)"
            raise StreamgaugeError(msg)
        recreated = sorted(name for name, topic_id in ids.items() if old.get(name, topic_id) != topic_id)
        if recreated and settings.fail_on_data_loss:
            raise StreamgaugeError(self.records_gone(f"topic {', '.join(recreated)} was deleted and recreated"))
        write_whole(self.place.beside(".topics"), orjson.dumps({**old, **ids}).decode())

    def records_gone(self, found: str) -> str:
        """The message for records that are gone before the query read them. found: the evidence."""
        return (
            f"{found}. Two ways out: continue with what is left and accept the gap (STREAMGAUGE_FAIL_ON_DATA_LOSS=false), "
            f"or recount from the earliest remaining record (`streamgauge reset {self.query}`)"
        )


def claim(settings: Settings) -> None:
    """Makes settings.owner the owner of the checkpoints at CHECKPOINT_URI, unless they have one.

    On disk, locks keep out a second pipeline, but only on one machine.

    Raises StreamgaugeError when it is another one, and StoreUnavailable when the object store cannot be reached.
    """
    if settings.checkpoint_uri:
        write_new(settings.checkpoints / OWNER, settings.owner)
        # Needed even after a successful write: some stores accept the second of two concurrent creations as an update.
        check_owner(settings)


def check_owner(settings: Settings) -> None:
    """Raises as `claim` does, but writes nothing."""
    if not settings.checkpoint_uri:
        return
    noted_in = settings.checkpoints / OWNER
    noted = text_of(noted_in)
    if noted not in {None, settings.owner}:
        msg = f"the checkpoints in {settings.checkpoints} belong to {noted}, and this is {settings.owner}: two pipelines that use them at the same time would destroy each other's counts. If that one has ended for good, delete {noted_in} and start again; if it is this one under another name, set STREAMGAUGE_OWNER={noted}; otherwise choose another folder"
        raise StreamgaugeError(msg)


def _shown(sources: Iterable[str]) -> str:
    return ", ".join(name if name.startswith(SCHEME) else f"topic {name}" for name in sorted(sources))
