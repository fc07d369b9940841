"""Opens recordings."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from infrastructure.errors import StreamgaugeError

_GZIP = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """The bytes of a recording, decompressed if gzip has compressed it. Raises StreamgaugeError when it reaches damage in a compressed one."""
    try:
        with path.open("rb") as file:
            yield gzip.GzipFile(fileobj=file) if file.peek(len(_GZIP)).startswith(_GZIP) else file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        msg = f"{path} is damaged, and what comes before that was sent: {error}; expected a whole gzip file"
        raise StreamgaugeError(msg) from error
