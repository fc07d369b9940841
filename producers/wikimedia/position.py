"""The position in the live stream up to which Kafka has everything. Stored on disk, so that a restarted producer resumes there."""

import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from pathlib import Path

import orjson

from infrastructure.errors import StreamgaugeError
from infrastructure.storage.paths import bytes_of, write_whole
from infrastructure.text import without_credentials

SECONDS_BETWEEN_SAVES = 1.0
REMEMBERED_IDS = 50_000
"""A quarter of an hour at some 50 events per second, far more than a reconnect repeats."""


class Position:
    """The id of the last event of the stream at `url` up to which all events are acknowledged by Kafka or need no record.

    Kafka acknowledges events in any order (partitions, records held back), so the position advances only over events without a gap.
    Raises StreamgaugeError when the file at `path` is damaged, or cannot be written.
    """

    def __init__(self, path: Path, url: str) -> None:
        self._path, self._url = path, without_credentials(url)  # the URL is written to a file
        self.last_event_id = self._saved()
        self._written = self.last_event_id
        self._pending: deque[tuple[int, str]] = deque()
        self._done: set[int] = set()
        self._marks = 0
        self._next_save = time.monotonic()

    def read(self, event_id: str) -> int:
        """Registers an event that was read. Returns the mark to acknowledge it with."""
        self._marks += 1
        self._pending.append((self._marks, event_id))
        return self._marks

    def acknowledged(self, mark: int) -> None:
        """Marks an event as done. Idempotent."""
        if not self._pending or mark < self._pending[0][0]:
            return
        self._done.add(mark)
        while self._pending and self._pending[0][0] in self._done:
            first, event_id = self._pending.popleft()
            self._done.discard(first)
            self.last_event_id = event_id or self.last_event_id
        if time.monotonic() >= self._next_save:
            self.save()

    def save(self) -> None:
        """Writes the position atomically."""
        self._next_save = time.monotonic() + SECONDS_BETWEEN_SAVES
        if self.last_event_id == self._written:
            return
        try:
            write_whole(self._path, orjson.dumps({"url": self._url, "last_event_id": self.last_event_id}).decode())
        except OSError as error:
            msg = f"the position in the stream cannot be saved in {self._path} ({error.strerror}); check that the folder is writable, or choose another STREAMGAUGE_HOME"
            raise StreamgaugeError(msg) from error
        self._written = self.last_event_id

    def _saved(self) -> str:
        if (text := bytes_of(self._path)) is None:
            return ""
        try:
            saved = orjson.loads(text)
            return str(saved["last_event_id"]) if saved["url"] == self._url else ""
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{self._path} is damaged ({error}); delete it, and the stream goes on from now, without the changes since the last run"
            raise StreamgaugeError(msg) from error


class RecentIds:
    """The ids of recent events, to detect repeated ones."""

    def __init__(self, ids: Iterable[str], most: int = REMEMBERED_IDS) -> None:
        self._most = most
        self._ids = OrderedDict.fromkeys(ids)

    def is_new(self, event_id: str) -> bool:
        """Whether the id is new. Remembers it."""
        if event_id in self._ids:
            return False
        self._ids[event_id] = None
        if len(self._ids) > self._most:
            self._ids.popitem(last=False)
        return True
