"""Files as a source: each is a partition of a topic of its own, `files:` and its path, and its lines are the records, counted from 1.

Line 0 stands for a file that cannot be read to its end, of which nothing counts.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from audit.reading.spark_logs import entries_of, uri_of
from contract.checkpoints.names import CheckpointPlace
from contract.json_text import is_json
from infrastructure.settings import Settings
from infrastructure.storage.paths import StoragePath, asking, file_at

SCHEME = "files:"
END = 2**31
"""An offset after the last line of any file."""
GONE = "no longer there: what came of them cannot be checked"
CHANGED = "changed since: the query has read what they held before"

_MOST_BYTES = 5 * 1024 * 1024
_SAMPLE_BYTES = 1024


class SourceFile(NamedTuple):
    """A file that a query has found. entry: of the listing that found it; a batch reads whole listings. modified_ms: since 1970, then."""

    path: StoragePath
    modified_ms: int
    entry: int
    topic: str

    def problem(self) -> str | None:
        """GONE or CHANGED. Of an object, a change within the same second is not seen.

        Raises StoreUnavailable when an object store does not answer, as `lines_of` does.
        """
        try:
            with asking(self.path):
                status = self.path.stat()
        except OSError:
            return GONE
        if isinstance(self.path, Path):
            return None if status.st_mtime_ns // 1_000_000 == self.modified_ms else CHANGED
        return None if int(status.st_mtime) == self.modified_ms // 1_000 else CHANGED


class Line(NamedTuple):
    """A line of a file. problem: why it is no document."""

    number: int
    value: bytes
    problem: str | None = None


def source_files(place: CheckpointPlace, settings: Settings) -> list[SourceFile]:
    """The files that the query has found, in order."""
    found = ((uri_of(entry), entry) for entry in entries_of(place.folder / "sources" / "0"))
    return [
        SourceFile(
            file_at("STREAMGAUGE_NEST_SOURCE", uri, settings.endpoint_of(uri)), entry["timestamp"], entry["batchId"], f"{SCHEME}{uri}"
        )
        for uri, entry in found
    ]


def lines_of(path: StoragePath) -> Iterator[Line]:
    """The documents of a file, plain or gzipped: one on each line that is not blank, or else one that spans all lines."""
    try:
        with asking(path):
            content = path.read_bytes()
        if not content:
            return
        if content.startswith(b"\x1f\x8b"):
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read()  # unlike `gzip.decompress`, it tells both checksums
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or f"{error} ({type(error).__name__})"
        yield Line(0, b"", f"the file cannot be read to its end, and nothing of it was used: {why}")
        return
    first = content.partition(b"\n")[0]
    if first.strip() and len(content) <= _MOST_BYTES and not is_json(first) and is_json(content):
        yield Line(1, content)
        return
    lines = _numbered(content)
    yield next(lines, Line(0, b"", "there is no document in the file"))
    yield from lines


def _numbered(content: bytes) -> Iterator[Line]:
    for number, line in enumerate(io.BytesIO(content), 1):
        if len(line) > _MOST_BYTES:
            yield Line(number, line[:_SAMPLE_BYTES], f"a line of more than {_MOST_BYTES >> 20} MiB; here is how it begins")
        elif document := line.strip():
            yield Line(number, document)
