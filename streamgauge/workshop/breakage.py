"""What a fault does to a running system, and how that is undone. faults.py gives each a name, and says how it shows."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from contract.checkpoints.names import checkpoints, drivers
from contract.create_topics import create_topics
from contract.topics import Topic
from infrastructure.errors import StreamgaugeError
from infrastructure.kafka.errors import reason
from infrastructure.kafka.result_table import read_to_end
from infrastructure.kafka.writing import Sent, write_records, write_rows
from infrastructure.settings import Settings
from infrastructure.storage.removal import remove
from streamgauge.operations.topic_deletion import ANSWER_SECONDS, delete_topics
from streamgauge.platform.server import EmbeddedServer

Raw = Mapping[bytes, bytes]
"""The rows of a result topic as they are in it, by key."""


class Action:
    """Breaks a system. What it does not say is: there is nothing to undo, and nothing is left."""

    def play(self, settings: Settings) -> Any:  # noqa: ANN401 - whatever JSON can hold
        """Breaks it. Returns what `undo` needs, as JSON can hold it. Raises StreamgaugeError when that is not possible."""
        raise NotImplementedError

    def undo(self, settings: Settings, before: Any) -> None:  # noqa: ANN401 - as `play` returns it
        """Undoes what has not been repaired or overwritten since. before: what `play` has returned. Raises StreamgaugeError as `play`."""

    def left(self, settings: Settings) -> str | None:  # noqa: ARG002 - others need them
        """What is still as it was left, in a line."""
        return None


@dataclass(frozen=True)
class Freeze(Action):
    """Stops processes by SIGSTOP. what: their name, for messages."""

    what: str
    find: Callable[[Settings], Sequence[psutil.Process]]

    def play(self, settings: Settings) -> None:
        found = self.find(settings)
        if not found:
            msg = f"no {self.what} runs with this STREAMGAUGE_HOME; start `streamgauge demo`"
            raise StreamgaugeError(msg)
        for process in found:
            process.suspend()

    def undo(self, settings: Settings, before: None) -> None:  # noqa: ARG002 - it needs none
        for process in self._frozen(settings):
            process.resume()

    def left(self, settings: Settings) -> str | None:
        return next((f"process {process.pid} is still as it was left" for process in self._frozen(settings)), None)

    def _frozen(self, settings: Settings) -> list[psutil.Process]:
        return [process for process in self.find(settings) if process.status() == psutil.STATUS_STOPPED]


@dataclass(frozen=True)
class Send(Action):
    """Sends records to a source topic. What is sent stays."""

    topic: Topic
    records: Callable[[Settings], Iterable[Sent]]

    def play(self, settings: Settings) -> None:
        write_records(settings.kafka, self.topic.name, self.records(settings))


@dataclass(frozen=True)
class Rewrite(Action):
    """Writes to a result topic, as another program. change: from the rows that are there, the values to write by key; None deletes the row."""

    topic: Topic
    change: Callable[[Raw], Mapping[bytes, bytes | None]]

    def play(self, settings: Settings) -> list[list[str | None]]:
        rows = raw_rows(settings, self.topic)
        if not rows:
            msg = f"topic {self.topic.name} has no rows yet; break the system when the Nest page shows some"
            raise StreamgaugeError(msg)
        changed = self.change(rows)
        write_rows(settings.kafka, self.topic.name, changed)
        return [[_text(key), _text(rows.get(key)), _text(value)] for key, value in changed.items()]

    def undo(self, settings: Settings, before: list[list[str | None]]) -> None:
        rows = raw_rows(settings, self.topic)
        values = (map(_bytes, one) for one in before)
        write_rows(settings.kafka, self.topic.name, {key or b"": old for key, old, new in values if rows.get(key or b"") == new})


@dataclass(frozen=True)
class SetTopic(Action):
    """Changes a setting of a topic in Kafka."""

    topic: Topic
    setting: str
    value: str

    def play(self, settings: Settings) -> None:
        self._set(settings, self.value)

    def undo(self, settings: Settings, before: None) -> None:  # noqa: ARG002 - what it was is declared
        self._set(settings, self.topic.config.get(self.setting))

    def left(self, settings: Settings) -> str | None:
        resource = ConfigResource(ResourceType.TOPIC, self.topic.name)
        admin = settings.kafka.admin()
        try:
            found = admin.describe_configs([resource])[resource].result(ANSWER_SECONDS)[self.setting].value
        except (KafkaException, TimeoutError) as error:
            raise self._refused(settings, error) from error
        return f"topic {self.topic.name} has {self.setting}={found}" if found == self.value else None

    def _set(self, settings: Settings, value: str | None) -> None:
        """value: None for Kafka's own."""
        how = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        change = ConfigEntry(self.setting, value, incremental_operation=how)
        resource = ConfigResource(ResourceType.TOPIC, self.topic.name, incremental_configs=[change])
        admin = settings.kafka.admin()
        try:
            admin.incremental_alter_configs([resource])[resource].result(ANSWER_SECONDS)
        except (KafkaException, TimeoutError) as error:
            raise self._refused(settings, error) from error

    def _refused(self, settings: Settings, error: KafkaException | TimeoutError) -> StreamgaugeError:
        return StreamgaugeError(f"Kafka at {settings.kafka}: {self.setting} of topic {self.topic.name}: {reason(error, ANSWER_SECONDS)}")


@dataclass(frozen=True)
class DeleteTopic(Action):
    """Deletes a result topic with its rows."""

    topic: Topic

    def play(self, settings: Settings) -> list[list[str | None]]:
        own = pipelines(settings)
        try:
            for process in own:
                process.suspend()  # so that no row is written after they are read
            rows = raw_rows(settings, self.topic)
            delete_topics(settings.kafka, [self.topic.name])
        finally:
            for process in own:
                with suppress(psutil.NoSuchProcess):  # the topic may be gone: its rows are to be returned
                    process.resume()
        return [[_text(key), _text(value)] for key, value in rows.items()]

    def undo(self, settings: Settings, before: list[list[str | None]]) -> None:
        create_topics(settings.kafka, [self.topic])
        newer = raw_rows(settings, self.topic)
        rows = (map(_bytes, one) for one in before)
        write_rows(settings.kafka, self.topic.name, {key or b"": value for key, value in rows if key not in newer})
        restart_pipeline(settings)


@dataclass(frozen=True)
class EmptyFile(Action):
    """Empties the newest offsets of a query's checkpoint, and kills the pipeline, which may hold them in memory."""

    query: str

    def play(self, settings: Settings) -> tuple[str, str]:
        place = next((place for place in checkpoints(settings) if place.name.query == self.query), None)
        if place is None or not isinstance(place.folder, Path) or not any(place.folder.glob("offsets/[0-9]*")):
            msg = f"query {self.query} has no checkpoint with a batch on this machine yet; break the system when the Nest page shows rows"
            raise StreamgaugeError(msg)
        restart_pipeline(settings)
        newest = max((place.folder / "offsets").iterdir(), key=lambda file: int(file.name) if file.name.isdecimal() else -1)
        text = newest.read_text()
        newest.write_text("")
        return str(newest), text

    def undo(self, settings: Settings, before: tuple[str, str]) -> None:
        file, text = Path(before[0]), before[1]
        if file.exists() and not file.read_bytes():
            file.write_text(text)
            restart_pipeline(settings)


@dataclass(frozen=True)
class MoveArchive(Action):
    """Moves an archive of a query out of the lake, as a disk that is not mounted does, and kills the pipeline, which may write to it."""

    archive: str

    def play(self, settings: Settings) -> str:
        folder = settings.lake / self.archive
        # The query would begin an archive without a batch anew, and not miss it.
        if not isinstance(folder, Path) or not _has_batch(folder):
            msg = f"{folder} has no batch on this machine yet; break the system a minute after its query has started"
            raise StreamgaugeError(msg)
        away = folder.with_name(f"{folder.name}.away")
        if away.exists():
            msg = f"{away} is there since an earlier fault, when the archive was written anew; delete it, then break the system"
            raise StreamgaugeError(msg)
        restart_pipeline(settings)
        folder.rename(away)
        return str(away)

    def undo(self, settings: Settings, before: str) -> None:
        away, folder = Path(before), Path(before.removesuffix(".away"))
        if away.exists() and not _has_batch(folder):  # else the archive was written anew
            restart_pipeline(settings)
            remove(folder)
            away.rename(folder)


def _has_batch(archive: Path) -> bool:
    return any(chain(archive.glob("_spark_metadata/[0-9]*"), archive.glob("_delta_log/*.json")))


def restart_pipeline(settings: Settings) -> None:
    """Kills what runs the Nest queries. The demo starts it again, and with it the queries that were given up."""
    for process in pipelines(settings):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def pipelines(settings: Settings) -> list[psutil.Process]:
    """The Spark drivers of the Nest queries on this machine."""
    return list({process.pid: process for name, process in drivers(settings).items() if name.query.startswith("nest-")}.values())


def embedded(server: type[EmbeddedServer]) -> Callable[[Settings], list[psutil.Process]]:
    """What finds the process of that embedded server."""
    return lambda settings: [process] if (process := server(settings).process) else []


def commands(command: str) -> Callable[[Settings], list[psutil.Process]]:
    """What finds the processes of a `streamgauge` command of the same STREAMGAUGE_HOME. command: how it begins."""
    return lambda settings: [process for process in psutil.process_iter() if _is_command(process, command, settings)]


def _is_command(process: psutil.Process, command: str, settings: Settings) -> bool:
    try:
        if not re.search(rf"streamgauge(\.cli)? {command}( |$)", " ".join(process.cmdline())):
            return False
        home = Path(process.cwd(), process.environ().get("STREAMGAUGE_HOME", Settings().home))
    except psutil.Error:
        return False
    return home.resolve() == settings.home.resolve()


def raw_rows(settings: Settings, topic: Topic) -> Raw:
    """The rows of a result topic as they are in it. Raises StreamgaugeError when Kafka does not answer, or does not have the topic."""
    table = read_to_end(settings.kafka, topic.name, lambda value: {"raw value": value})
    return dict(zip(table.keys(), (row["raw value"] for row in table.rows()), strict=True))


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")  # any bytes, which JSON does not hold


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("latin-1")
