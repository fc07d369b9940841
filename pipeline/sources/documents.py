"""The documents of one file, in plain Python: what runs where Spark's tasks run.

A file is taken whole or not at all. One that cannot be read to its end (a gzip that was cut off, no right to read it) gives no document but
one line that says why, so that it can land again, under another name, without any document counting twice.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from contract.text import is_json

LARGEST_DOCUMENT_BYTES = 5 * 1024 * 1024
"""A larger one could not go to the dead letters, which are Kafka records."""
LARGEST_SAMPLE_BYTES = 1024
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 1024 * 1024


class Line(NamedTuple):
    """A document of a file: its line's number, from 1, and its bytes.

    problem: why it is none; then `value` is what there is of it. The number is 0 when the problem is the whole file's.
    """

    number: int
    value: bytes
    problem: str | None = None


def lines_of(path: Path) -> Iterator[Line]:
    """The documents of the file at `path`, plain or gzipped: one a line, or a single one over all lines. Blank lines are skipped; a file of no bytes has none."""
    try:
        if path.stat().st_size == 0:  # Spark's file source hands on no such file
            return
        _read_to_its_end(path)
        with _opened(path) as file:
            if (single := _single_document(file)) is not None:
                yield Line(1, single)
                return
        with _opened(path) as file:
            is_empty = True
            for line in _lines(file):
                is_empty = False
                yield line
        if is_empty:
            yield Line(0, b"", "there is no document in the file")
    except (OSError, EOFError, zlib.error) as error:
        yield Line(0, b"", f"the file cannot be read to its end, and nothing of it was used: {_told(error)}")


def _read_to_its_end(path: Path) -> None:
    """Finds out whether the file is whole, before any line of it is used."""
    with _opened(path) as file:
        while file.read(_CHUNK_BYTES):
            pass


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The file, unzipped."""
    with path.open("rb") as raw:
        is_gzip = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    return gzip.open(path) if is_gzip else path.open("rb")


def _single_document(file: IO[bytes] | gzip.GzipFile) -> bytes | None:
    """The whole content if it is one document that is written over several lines."""
    first = file.readline(LARGEST_DOCUMENT_BYTES)
    if not first.strip() or is_json(first):
        return None
    whole = first + file.read(LARGEST_DOCUMENT_BYTES + 1 - len(first))
    return whole if len(whole) <= LARGEST_DOCUMENT_BYTES and is_json(whole) else None


def _lines(file: IO[bytes] | gzip.GzipFile) -> Iterator[Line]:
    number = 0
    while line := file.readline(LARGEST_DOCUMENT_BYTES + 1):
        number += 1
        if len(line) > LARGEST_DOCUMENT_BYTES:
            yield Line(
                number, line[:LARGEST_SAMPLE_BYTES], f"a line of more than {LARGEST_DOCUMENT_BYTES >> 20} MiB; here is how it begins"
            )
            while line and not line.endswith(b"\n"):
                line = file.readline(_CHUNK_BYTES)
        elif document := line.strip():
            yield Line(number, document)


def _told(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "it is no longer there"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{error} ({type(error).__name__})"
