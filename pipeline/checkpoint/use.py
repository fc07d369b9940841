"""Which process uses a checkpoint, and whether the checkpoint still matches the current topics."""

from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil
from confluent_kafka import KafkaException, TopicCollection
from filelock import FileLock, Timeout

from contract.errors import StreamgaugeError
from contract.kafka.errors import KafkaAway, forbidden, is_forbidden
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointPlace, others_of_query
from contract.storage.paths import StoragePath, names_in, text_of, write_whole
from pipeline.query import Query
from pipeline.sources.files import SCHEME

PREVIOUS_DRIVER_SECONDS = 15
ANSWER_SECONDS = 10


@dataclass(frozen=True)
class CheckpointUse:
    """The use of one query's checkpoint. All methods raise StoreAway when its object store cannot be reached."""

    query: str
    place: CheckpointPlace

    @classmethod
    def of(cls, query: Query, settings: Settings) -> "CheckpointUse":
        """The checkpoint of the query's name, version and output mode."""
        return cls(query.name, query.checkpoint_name.place(settings))

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

    def lock(self, jvm_pid: int) -> FileLock:
        """Locks the checkpoint for this process, whose Spark driver is `jvm_pid`, until `unlock`.

        Raises StreamgaugeError immediately when another process holds it, or when the JVM of a killed process does not exit.
        """
        self.place.notes.mkdir(parents=True, exist_ok=True)
        lock, driver = FileLock(self.place.note(".lock"), timeout=0), self.place.driver
        try:
            lock.acquire()
        except Timeout as error:
            who = "" if driver is None else f" (its Spark driver is pid {driver.pid})"
            msg = f"query {self.query} is already running in another process{who}, which holds {self.folder}; stop that one, or use another STREAMGAUGE_HOME"
            raise StreamgaugeError(msg) from error
        if driver is not None and driver.pid != jvm_pid:
            _wait_until_gone(driver)
        self._holder.write_text(str(jvm_pid))
        return lock

    def unlock(self, lock: FileLock) -> None:
        """Releases the checkpoint after its query has stopped."""
        self._holder.unlink(missing_ok=True)
        lock.release()

    @property
    def _holder(self) -> Path:
        """The file with the Spark driver's pid. The driver of a killed process continues for a moment."""
        return self.place.note(".driver")

    def check_topics(self, topics: set[str], settings: Settings) -> None:
        """Records which topics, by Kafka's topic ids, the offsets belong to.

        Raises KafkaAway when Kafka cannot be reached.
        Raises StreamgaugeError when a topic's id has changed, unless settings.fail_on_data_loss is off. Spark alone would not notice once
        the new topic holds as many records as the old one did.
        """
        old = self._sources
        if of_files := [name for name in old if name.startswith(SCHEME)]:
            raise self._of_another_source(of_files[0], f"topic {', '.join(sorted(topics))}")
        ids = _topic_ids(topics, settings)
        anew = sorted(name for name, topic_id in ids.items() if old.get(name, topic_id) != topic_id)
        if anew and settings.fail_on_data_loss:
            raise StreamgaugeError(self.records_gone(f"topic {', '.join(anew)} was deleted and recreated"))
        self._remember({**old, **ids})

    def records_gone(self, found: str) -> str:
        """The message for records that are gone before the query read them. found: the evidence."""
        return (
            f"{found}. Two ways out: go on with what is left and accept the gap (STREAMGAUGE_FAIL_ON_DATA_LOSS=false), "
            f"or recount from the earliest record that is there (`streamgauge reset {self.query}`)"
        )

    def check_files(self, name: str) -> None:
        """Records the folder (as `files:/folder`) of the checkpoint. Raises StreamgaugeError when it belongs to another source."""
        if others := [other for other in self._sources if other != name]:
            raise self._of_another_source(", ".join(others), name)
        self._remember({name: ""})

    @property
    def _sources(self) -> dict[str, str]:
        """The recorded sources: topics and their ids, or a folder."""
        remembered = text_of(self.place.beside(".topics"))
        return orjson.loads(remembered) if remembered and not self.is_new else {}

    def _remember(self, sources: dict[str, str]) -> None:
        write_whole(self.place.beside(".topics"), orjson.dumps(sources).decode())

    def _of_another_source(self, was: str, now: str) -> StreamgaugeError:
        return StreamgaugeError(
            f"query {self.query} has read {was} and is now to read {now}; a checkpoint is of one source: set STREAMGAUGE_NEST_SOURCE as it was, or recount from the start (`streamgauge reset {self.query}`)"
        )


def _topic_ids(topics: set[str], settings: Settings) -> dict[str, str]:
    admin = settings.kafka.admin()
    described = admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=ANSWER_SECONDS)
    try:
        return {name: str(future.result().topic_id) for name, future in described.items()}
    except KafkaException as error:
        if is_forbidden(error.args[0]):
            raise forbidden(settings.kafka, f"describe topic {', '.join(sorted(topics))}") from error
        msg = f"Kafka at {settings.kafka} does not describe topic {', '.join(sorted(topics))}: {error.args[0].str()}"
        raise KafkaAway(msg) from error


def _wait_until_gone(driver: psutil.Process) -> None:
    """Waits until the JVM of a killed driver exits, which takes a moment."""
    try:
        driver.wait(PREVIOUS_DRIVER_SECONDS)
    except psutil.TimeoutExpired as error:
        msg = f"the Spark driver of an earlier run (pid {driver.pid}) is still running; stop it, then start again"
        raise StreamgaugeError(msg) from error
