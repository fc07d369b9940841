"""Deletes files after confirmation, and measures them. Never follows links."""

import os
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path

import typer

from infrastructure.errors import StreamgaugeError
from infrastructure.output.terminal import err
from infrastructure.storage.paths import StoragePath, asking

_BLOCK_BYTES = 512


def confirm(question: str, *, yes: bool) -> None:
    """Ends the command with the exit code of an error unless the user confirms `question`. yes: it is confirmed already, by --yes.

    Raises StreamgaugeError when standard input is not a terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        msg = "this command asks before it deletes or overwrites, and standard input is not a terminal; add --yes to confirm in advance"
        raise StreamgaugeError(msg)
    if not typer.confirm(question, default=False, err=True):
        err.print("nothing was changed")
        raise typer.Exit(StreamgaugeError.exit_code)


def remove(path: StoragePath) -> None:
    """Removes a file, a folder with its contents, or a link but not its target. A missing path is not an error.

    Raises StreamgaugeError when something cannot be removed.
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
    except FileNotFoundError:  # another program has deleted it, or a part of it
        if os.path.lexists(path):
            remove(path)
    except OSError as error:
        msg = f"could not delete {error.filename or path}: {error.strerror}; check its owner, and try again"
        raise StreamgaugeError(msg) from error


def bytes_on_disk(path: StoragePath) -> int:
    """The disk space that removing `path` frees. Counts blocks, because sparse files such as Kafka's indexes use less than their length."""
    if not isinstance(path, Path):
        with asking(path):
            return sum(file["size"] for file in path.fs.find(path.path, detail=True).values())
    if not path.is_dir() or path.is_symlink():
        return _blocks(path)
    return sum(_blocks(Path(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _blocks(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:  # deleted meanwhile, or in a folder without access
        return 0
    return status.st_blocks * _BLOCK_BYTES if stat.S_ISREG(status.st_mode) else 0
