"""Locks for work that only one process may do at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from infrastructure.errors import StreamgaugeError


class InUse(StreamgaugeError):  # noqa: N818 - it names the state
    """Another process holds the lock."""


@contextmanager
def alone(lock: Path, refusal: str) -> Iterator[None]:
    """Holds the file `lock` for the block; the system releases it with the process, too. Raises InUse(refusal) if another holds it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        acquired = FileLock(lock, timeout=0).acquire()
    except Timeout as error:
        raise InUse(refusal) from error
    with acquired:
        yield
