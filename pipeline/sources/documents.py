"""Reads the documents of one file, in plain Python, within Spark's tasks.

A file is read as a whole or not at all. A file that cannot be read to its end (a truncated gzip, missing permissions) gives no document,
only one line with the reason. It can land again under another name, and no document counts twice. An object store that does not answer is no such file: it is asked again.
"""

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from contract.json_text import is_json
from infrastructure.storage.paths import StoragePath, asking

MAX_DOCUMENT_BYTES = 5 * 1024 * 1024
"""A larger document would not fit into a dead letter, which is a Kafka record."""
MAX_SAMPLE_BYTES = 1024
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 1024 * 1024


class Line(NamedTuple):
    """A document of a file.

    number: its line number, from 1; 0 if the problem concerns the whole file.
    value: its bytes.
    problem: why it is not a document; `value` is then what could be read of it.
    """

    number: int
    value: bytes
    problem: str | None = None


def lines_of(path: StoragePath) -> Iterator[Line]:
    """The documents of a file, plain or gzipped: one per line, or a single one that spans all lines.

    Blank lines are skipped. An empty file has no documents. Raises StoreUnavailable when an object store does not give the file.
    """
    try:
        with asking(path):
            size = path.stat().st_size
        if size == 0:  # Spark's file source skips empty files
            return
        with _opened(path) as file:
            while file.read(_CHUNK_BYTES):  # before any line of it is used
                pass
            file.seek(0)
            if (single := _single_document(file)) is not None:
                yield Line(1, single)
                return
            file.seek(0)
            lines = _lines(file)
            yield next(lines, Line(0, b"", "there is no document in the file"))
            yield from lines
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or f"{error} ({type(error).__name__})"
        yield Line(0, b"", f"the file cannot be read to its end, and nothing of it was used: {why}")


@contextmanager
def _opened(path: StoragePath) -> Iterator[IO[bytes] | gzip.GzipFile]:
    with path.open("rb") if isinstance(path, Path) else _copied(path) as raw:
        is_gzip = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        raw.seek(0)
        yield gzip.GzipFile(fileobj=raw) if is_gzip else raw


def _copied(path: StoragePath) -> IO[bytes]:
    """A copy of an object, which is read twice."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    with asking(path), path.open("rb") as source:
        shutil.copyfileobj(source, copy)
    copy.seek(0)
    return copy


def _single_document(file: IO[bytes] | gzip.GzipFile) -> bytes | None:
    """The whole content if it is one document that spans several lines."""
    first = file.readline(MAX_DOCUMENT_BYTES)
    if not first.strip() or is_json(first):
        return None
    whole = first + file.read(MAX_DOCUMENT_BYTES + 1 - len(first))
    return whole if len(whole) <= MAX_DOCUMENT_BYTES and is_json(whole) else None


def _lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[Line]:
    number = 0
    while line := file.readline(MAX_DOCUMENT_BYTES + 1):
        number += 1
        if len(line) > MAX_DOCUMENT_BYTES:
            yield Line(number, line[:MAX_SAMPLE_BYTES], f"a line of more than {MAX_DOCUMENT_BYTES >> 20} MiB; here is how it begins")
            while line and not line.endswith(b"\n"):
                line = file.readline(_CHUNK_BYTES)
        elif document := line.strip():
            yield Line(number, document)
