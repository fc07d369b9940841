"""Temporary files in STREAMGAUGE_HOME: the system's folder may be small or full, and may not allow libraries to be loaded from it."""

import atexit
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from filelock import FileLock, Timeout

_LOCK = "lock"


@cache
def temporary_folder(home: Path) -> Path:
    """The folder of this process in `home`/tmp, until it ends. Deletes the folders of processes that were killed."""
    place = home.absolute() / "tmp"
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / _LOCK):
        for other in place.iterdir():
            if other.is_dir():
                with suppress(Timeout), FileLock(other / _LOCK, timeout=0):
                    shutil.rmtree(other, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix="", dir=place))
        lock = FileLock(folder / _LOCK)
        lock.acquire()
    atexit.register(_end, folder, lock)
    return folder


def _end(folder: Path, lock: FileLock) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
