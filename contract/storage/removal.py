"""Deleting files that a person agreed to delete: asking, weighing, removing. No link is ever followed."""

import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path

import typer

from contract.errors import StreamgaugeError
from contract.storage.paths import StoragePath, asking, files_below

_BLOCK_BYTES = 512


def is_agreed(question: str, *, yes: bool) -> bool:
    """Whether the person says yes to `question`, or has said so by --yes.

    Raises StreamgaugeError when there is nobody to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        msg = "this deletes, and asks before it does; standard input is no terminal: say --yes to agree beforehand"
        raise StreamgaugeError(msg)
    return typer.confirm(question, default=False, err=True)


def remove(path: StoragePath) -> None:
    """Removes a file, a folder with all that is in it, or a link without what it leads to; nothing there is fine.

    Raises StreamgaugeError for what cannot be removed.
    """
    if not isinstance(path, Path):
        with suppress(FileNotFoundError), asking(path):
            path.fs.rm(path.path, recursive=True)
        return
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return
    except OSError as error:
        msg = f"could not delete {error.filename or path}: {error.strerror}; see who owns it, and try again"
        raise StreamgaugeError(msg) from error


def bytes_on_disk(path: StoragePath) -> int:
    """What removing `path` gives back: the blocks of its files, and not the length of those with holes in them, as Kafka's indexes."""
    if not isinstance(path, Path):
        return sum(file.bytes for file in files_below(path))
    if not path.is_dir() or path.is_symlink():
        return _blocks(path)
    return sum(_blocks(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _blocks(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:  # gone meanwhile, or in a folder that cannot be entered
        return 0
    return status.st_blocks * _BLOCK_BYTES if stat.S_ISREG(status.st_mode) else 0
