"""A small disk of its own for a system, which can be full, or slow."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SIZE = "1500m"
_AT_ONCE = 1 << 20
_SLOW_CALLS = "fsync,fdatasync,rename,renameat,unlink,ftruncate"
_DELAY_MICROSECONDS = 100_000


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mounts a file system of SIZE at `folder`, if this process may do that; yields whether it did."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "chaos", str(folder)]
    is_mounted = sys.platform == "linux" and os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=False)


@contextlib.contextmanager
def full(folder: Path) -> Iterator[None]:
    """Leaves no byte of the disk free while the context lasts."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(_AT_ONCE)) == _AT_ONCE:
                pass
        yield
    finally:
        filler.unlink()


def can_slow() -> bool:
    """Whether `slow` works here."""
    strace = shutil.which("strace")
    return (
        strace is not None and subprocess.run([strace, "-qq", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0
    )


@contextlib.contextmanager
def slow(pid: int) -> Iterator[None]:
    """Delays each call of the process that waits for the disk by a tenth of a second while the context lasts."""
    injected = f"inject={_SLOW_CALLS}:delay_enter={_DELAY_MICROSECONDS}"
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={_SLOW_CALLS}", "-e", injected, "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as tracer:
        try:
            yield
        finally:
            tracer.terminate()
