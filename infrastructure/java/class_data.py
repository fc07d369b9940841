"""Archives of the classes that a Java program loads, with which its start takes about two thirds of the CPU time.

See https://docs.oracle.com/en/java/javase/21/vm/class-data-sharing.html.
"""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from infrastructure.errors import StreamgaugeError
from infrastructure.java import jars
from infrastructure.storage.downloads import draft_of

MAX_ARCHIVES = 9
"""Installations share the cache. Each has an archive of Spark's classes (220 MB), of the broker's (65 MB) and of the registry's (75 MB)."""


def archives(cache: Path) -> list[Path]:
    """All archives in the cache, the newest first."""
    return sorted((cache / "class-data").glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)


def archive_for(java: Path, class_path: Sequence[Path], cache: Path) -> Path:
    """The archive for a Java and a class path that begins with these jars, whether it exists or not.

    Java accepts an archive only with the jars from which it was created: a new installation has another one.
    """
    key = hashlib.sha256("\n".join(map(_identity, [java, *class_path])).encode()).hexdigest()[:12]
    return cache.absolute() / "class-data" / f"{key}.jsa"


def options(archive: Path) -> list[str]:
    """The options of a JVM that uses the archive: none without one. Java ignores an archive that does not fit."""
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if archive.exists() else []


def create(archive: Path, java: Path, class_path: Sequence[Path], loaded: Path) -> None:
    """Creates the archive of the classes in the list `loaded`, which a JVM with -XX:DumpLoadedClassList has written.

    Raises StreamgaugeError if Java does not create it.
    """
    with draft_of(archive) as draft:
        dump = ("-Xshare:dump", f"-XX:SharedClassListFile={loaded}", f"-XX:SharedArchiveFile={draft}")
        done = subprocess.run([java, *dump, "-cp", jars.class_path(class_path)], capture_output=True, text=True, check=False)
        if done.returncode or not draft.exists():
            msg = f"Java could not save its classes to {archive}: {done.stderr.strip() or done.stdout.strip()}"
            raise StreamgaugeError(msg)
    for older in archives(archive.parents[1])[MAX_ARCHIVES:]:
        older.unlink(missing_ok=True)


def _identity(path: Path) -> str:
    """What identifies a file to Java: path, size and time of change."""
    status = path.stat() if path.exists() else None
    return f"{path}:{status.st_size}:{status.st_mtime_ns}" if status else str(path)
