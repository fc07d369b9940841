"""Puts a query back to before its first run: its checkpoints go, and what it has written.

The checkpoints' locks are held until all is deleted, from before anything is looked at, and stay as empty files. A reset that is cut off is to be
done again: parts that are gone already are no error.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import get_args

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from filelock import FileLock, Timeout

from contract.errors import StreamgaugeError
from contract.kafka.result_table import read_keys
from contract.kafka.tombstones import delete_rows
from contract.settings import Settings
from contract.storage.checkpoint_names import CheckpointName, is_checkpoint, remains_of
from contract.storage.paths import StoragePath, asking, files_below
from contract.storage.removal import bytes_on_disk, remove
from contract.text import size_text
from contract.topics import DEAD_LETTERS
from pipeline.catalog import known
from pipeline.checkpoint.owner import check_owner
from pipeline.ingest.upsert import UpsertTable
from pipeline.query import OutputMode, Query
from pipeline.sinks.console import on_console
from pipeline.sinks.sinks import CompactedAvroTopic, CompactedTopic, DeadLetterTopic, DeltaArchive, ParquetArchive
from pipeline.sources.files import Files

ANSWER_SECONDS = 5


@dataclass(frozen=True)
class Deletion:
    """One thing to delete: what a person is told of it, and how it is done."""

    what: str
    do: Callable[[], object]


def named(name: str, settings: Settings) -> Query:
    """The query of that name, or what prints it (`<name>-console`). Raises StreamgaugeError for a name that there is not."""
    by_name = {query.name: query for query in known(settings)}
    printing = {one.name: one for one in map(on_console, by_name.values())}
    if name not in by_name | printing:
        msg = f"no query {name}; there are {', '.join(by_name)}"
        raise StreamgaugeError(msg)
    return (by_name | printing)[name]


@contextmanager
def checkpoints_held(query: Query, settings: Settings) -> Iterator[None]:
    """Keeps the query from being started, in any mode. Raises StreamgaugeError when it runs."""
    check_owner(settings)
    any_mode = {replace(query.checkpoint_name, mode=mode) for mode in get_args(OutputMode)}
    others = {name for path in remains_of(query.name, settings) if (name := CheckpointName.of(path.name))}
    with ExitStack() as locks:
        for place in (name.place(settings) for name in sorted(any_mode | others)):
            place.notes.mkdir(parents=True, exist_ok=True)
            lock, driver = FileLock(place.note(".lock"), timeout=0), place.driver
            try:
                locks.enter_context(lock)
            except Timeout as error:
                who = f" (its Spark driver is pid {driver.pid})" if driver else ""
                msg = f"query {query.name} runs{who}: it holds {place.folder}; stop that `streamgauge run` or the demo, then reset"
                raise StreamgaugeError(msg) from error
            if driver is not None:
                msg = f"the Spark driver of query {query.name} (pid {driver.pid}) still ends; try again in a moment"
                raise StreamgaugeError(msg)
        yield


def deletions(query: Query, settings: Settings) -> list[Deletion]:
    """What a reset of the query deletes now; nothing if it is as before its first run.

    Raises StreamgaugeError when the result cannot be looked at, as Kafka does not answer, say.
    """
    return [*_of_checkpoints(query, settings), *_of_result(query, settings)]


def notes(query: Query, settings: Settings) -> list[str]:
    """What a person should know before a reset of the query."""
    lines = []
    if isinstance(query.sink, DeadLetterTopic):
        lines.append(f"the letters stay in topic {DEAD_LETTERS.name}; the next run writes them again, with the same keys")
    if isinstance(query.source, Files):
        return [*lines, f"the next run reads all files that are in {query.source.folder} then"]
    gone = _records_gone(query.source.name, settings)
    if gone:
        lines.append(f"topic {query.source.name} no longer has its first {gone} records: what came of them is not made again")
    if settings.starting_offsets != "earliest":
        lines.append(f"the next run starts at STREAMGAUGE_STARTING_OFFSETS={settings.starting_offsets}, and not at the earliest record")
    return lines


def _of_checkpoints(query: Query, settings: Settings) -> list[Deletion]:
    # Locks stay: this process holds them, and a file that is unlinked keeps nobody out. Another process would lock a new one of its name.
    found = [path for path in remains_of(query.name, settings) if path.suffix != ".lock"]
    if not found:
        return []
    shown = ", ".join(path.name for path in found if is_checkpoint(path.name)) or ", ".join(path.name for path in found)
    size = size_text(sum(map(_bytes, found)))
    return [Deletion(f"checkpoint {shown} in {settings.checkpoints}, {size}", partial(_remove_all, found))]


def _remove_all(paths: list[StoragePath]) -> None:
    for path in paths:
        _remove(path)


def _bytes(path: StoragePath) -> int:
    return bytes_on_disk(path) if isinstance(path, Path) else sum(file.bytes for file in files_below(path))


def _remove(path: StoragePath) -> None:
    if isinstance(path, Path):
        remove(path)
        return
    with suppress(FileNotFoundError), asking(path):
        path.fs.rm(path.path, recursive=True)


def _of_result(query: Query, settings: Settings) -> list[Deletion]:
    match query.sink:
        case CompactedTopic(topic=topic) | CompactedAvroTopic(topic=topic):
            keys = read_keys(settings.kafka, topic.name)
            what = f"topic {topic.name}: its {len(keys)} rows, by null values"
            return [Deletion(what, partial(delete_rows, settings.kafka, topic.name, keys))] if keys else []
        case ParquetArchive(path=path) | DeltaArchive(path=path):
            return _of_table(settings.lake / path)
        case UpsertTable():
            location = query.sink.location(settings)
            return [deletion for path in (location.table, location.deletions, location.schema) for deletion in _of_table(path)]
        case _:
            return []


def _of_table(folder: StoragePath) -> list[Deletion]:
    if not isinstance(folder, Path):
        return [Deletion(f"table {folder}, {size_text(_bytes(folder))}", partial(_remove, folder))] if folder.exists() else []
    if folder.is_symlink():
        msg = f"{folder} is a link to {folder.readlink()}; a reset follows no link: delete that folder by hand, and then reset"
        raise StreamgaugeError(msg)
    if not folder.exists():
        return []
    return [Deletion(f"{'table' if folder.is_dir() else 'file'} {folder}, {size_text(bytes_on_disk(folder))}", partial(remove, folder))]


def _records_gone(source: str, settings: Settings) -> int:
    """How many records the topic has had that are no longer there; 0 if Kafka does not tell."""
    admin = settings.kafka.admin()
    try:
        partitions = admin.list_topics(source, timeout=ANSWER_SECONDS).topics[source].partitions
        earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        firsts = admin.list_offsets({TopicPartition(source, number): earliest for number in partitions}, request_timeout=ANSWER_SECONDS)
        return sum(first.result(ANSWER_SECONDS).offset for first in firsts.values())
    except (KafkaException, TimeoutError):
        return 0
