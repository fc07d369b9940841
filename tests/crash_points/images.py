"""What a kill would leave at each point of a run: taken before each operation, while the program waits, and restored for one point after the other."""

import hashlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Message, TopicPartition
from confluent_kafka.admin import OffsetSpec
from plain import ANSWER_SECONDS, read_topic

from contract.domains import TOPICS
from crash_points.watched import End, Losses, Torn
from infrastructure.settings import Settings

Ends = Mapping[tuple[str, int], int]
"""The end offset of each partition."""


class Images:
    """The images of a run, by number from 0. A context manager, which deletes them at its end.

    but: folders of the home that belong to no image. sources: topics that the run only reads; they stay as they are.
    """

    def __init__(self, settings: Settings, but: Sequence[str], sources: Sequence[str]) -> None:
        self._settings, self._but = settings, but
        self._topics = [topic for topic in TOPICS if topic.name not in sources]
        self._admin = settings.kafka.admin()
        self._folder = TemporaryDirectory(prefix="crash-points-")
        self._ends: list[Ends] = []
        self._torn: list[Torn | None] = []
        self._losses: list[Losses] = []
        self._records: dict[str, list[Message]] = {}

    def __enter__(self) -> "Images":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def take(self, torn: Torn | None, losses: Losses) -> None:
        """The home and the topics as they are now, what a torn write would add, and a power failure take. What the program does meanwhile must not change them, but an operation may just come to its end."""
        self._ends.append(self._ends_now())
        self._torn.append(torn)
        self._losses.append(losses)
        for _ in range(10):
            with suppress(shutil.Error, FileNotFoundError):
                shutil.rmtree(self._image(-1), ignore_errors=True)
                shutil.copytree(self._settings.home, self._image(-1), ignore=self._ignored, symlinks=True)
                return
        msg = f"the files in {self._settings.home} do not hold still"
        raise OSError(msg)

    def restore(self, number: int, end: End) -> None:
        """Leaves the home and the topics as that end leaves them. A record may have another offset; its key, value, partition and order are the same."""
        if not self._records:
            self._records = {topic.name: read_topic(self._settings, topic.name) for topic in self._topics}
        home = self._settings.home
        for path in home.iterdir():
            if path.name not in self._but:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self._image(number), home, symlinks=True, dirs_exist_ok=True)
        for note in home.rglob("*.driver"):
            if note.read_text():  # the process that it names would be dead
                note.write_text(str(_ended()))
        if end is End.TORN and (torn := self._torn[number]):
            torn.leave()
        if end is End.POWER:
            for loss in self._losses[number]:
                loss.lose()
        self._restore_topics(self._ends[number])

    def content(self, number: int, end: End) -> str:
        """The same for images that are the same."""
        more = {End.KILL: None, End.TORN: self._torn[number], End.POWER: self._losses[number] or None}[end]
        found, folder = hashlib.sha256(repr((sorted(self._ends[number].items()), more)).encode()), self._image(number)
        for path in sorted(folder.rglob("*")):
            found.update(repr((str(path.relative_to(folder)), path.read_bytes() if path.is_file() else None)).encode())
        return found.hexdigest()

    def _image(self, number: int) -> Path:
        return Path(self._folder.name, str(number % len(self._ends)))

    def _ignored(self, folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name in self._but] if Path(folder) == self._settings.home else []

    def _ends_now(self) -> Ends:
        latest = OffsetSpec.latest()
        wanted = {TopicPartition(topic.name, number): latest for topic in self._topics for number in range(topic.partitions)}
        return {(of.topic, of.partition): future.result(ANSWER_SECONDS).offset for of, future in self._admin.list_offsets(wanted).items()}

    def _restore_topics(self, ends: Ends) -> None:
        """Empties each topic that has other records than the image, and writes the image's again."""
        now, producer = self._ends_now(), self._settings.kafka.producer({"acks": "all"})
        for topic in self._topics:
            partitions = range(topic.partitions)
            if all(now[topic.name, number] == ends[topic.name, number] for number in partitions):
                continue
            if topic.is_compacted:
                for key, partition in {(record.key(), record.partition()) for record in read_topic(self._settings, topic.name)}:
                    producer.produce(topic.name, None, key, partition)
            else:
                doomed = [TopicPartition(topic.name, number, now[topic.name, number]) for number in partitions]
                for future in self._admin.delete_records(doomed).values():
                    future.result(ANSWER_SECONDS)
            for record in self._records[topic.name]:
                if record.offset() < ends[topic.name, record.partition()]:
                    time, headers = record.timestamp()[1], record.headers()
                    producer.produce(topic.name, record.value(), record.key(), record.partition(), timestamp=time, headers=headers)
        assert producer.flush(ANSWER_SECONDS) == 0, f"Kafka did not take all records in {ANSWER_SECONDS} s"


def _ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid
