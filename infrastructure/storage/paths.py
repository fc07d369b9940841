"""Folders on disk or in an object store, behind one interface."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union
from uuid import uuid4

from infrastructure.errors import StreamgaugeError, Unavailable

if TYPE_CHECKING:
    from upath import UPath

StoragePath: TypeAlias = Union[Path, "UPath"]
"""Both types behave like pathlib. str() gives the path for Spark: a local path, or s3a://bucket/folder."""

OBJECT_STORES = ("s3a", "abfss", "gs", "hdfs")
"""URI schemes. universal-pathlib reads them with the packages s3fs, adlfs and gcsfs, and HDFS with infrastructure.storage.hdfs."""
_LEFT_SECONDS = 3600
"""A partial file that is so old belongs to no process that writes it."""


class StoreUnavailable(Unavailable):
    """An object store does not answer, or answers unexpectedly."""

    server = "the object store"


@cache
def remote_folder(variable: str, uri: str, endpoint_url: str) -> "UPath":
    """The object store folder at `uri`. variable: the setting that holds it. endpoint_url: see Settings.endpoint_of.

    Raises StreamgaugeError when the package for the scheme is not installed, or the store cannot be reached or denies access.
    """
    from upath import UPath

    if uri.startswith("hdfs:"):
        import infrastructure.storage.hdfs  # noqa: F401 - which registers it
    try:
        folder = UPath(uri, use_listings_cache=False, **({"endpoint_url": endpoint_url} if endpoint_url else {}))
        folder.fs.exists(folder.path)
    except Exception as error:  # stores have no common error class; the error for a missing package names it
        msg = f"{variable}={uri} cannot be reached{f' at {endpoint_url}' if endpoint_url else ''}: {type(error).__name__}: {error}; check the address, and that the environment has the credentials and the package for it (docs/object-stores.md)"
        raise StreamgaugeError(msg) from error
    return folder


def file_at(variable: str, uri: str, endpoint_url: str) -> StoragePath:
    """The file at `uri`, a path or a URI in an object store, in which no character is encoded. Raises the errors of `remote_folder`."""
    scheme, is_remote, path = uri.partition("://")
    if not is_remote:
        return Path(uri)
    bucket, _, name = path.partition("/")
    return remote_folder(variable, f"{scheme}://{bucket}", endpoint_url) / name


@contextmanager
def asking(path: StoragePath) -> Iterator[None]:
    """Converts errors of an object store to StoreUnavailable, except FileNotFoundError and FileExistsError. Has no effect for local paths."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except Exception as error:  # stores have no common error class
        if isinstance(path, Path):
            raise
        msg = f"{path} cannot be reached: {type(error).__name__}: {error}"
        raise StoreUnavailable(msg) from error


def bytes_of(path: StoragePath) -> bytes | None:
    """The file's bytes. None if the file does not exist. Raises StoreUnavailable when the object store does not answer."""
    try:
        with asking(path):
            return path.read_bytes()
    except FileNotFoundError:
        return None


def text_of(path: StoragePath) -> str | None:
    """The file's text, as `bytes_of`. Bytes that are not UTF-8, as in a damaged file, become U+FFFD."""
    content = bytes_of(path)
    return None if content is None else content.decode(errors="replace")


def identity(folder: Path) -> str:
    """An id of the folder, which stays the same when the folder is moved or reached by another path. A copy has another id."""
    status = folder.stat()
    return f"{status.st_dev}-{status.st_ino}"


def names_in(folder: StoragePath) -> list[str]:
    """The sorted names of files and folders in `folder`. Empty if it does not exist. Raises StoreUnavailable as `text_of` does."""
    return sorted(name for name, _ in _listed(folder))


def folders_in(folder: StoragePath) -> list[str]:
    """The sorted names of folders in `folder`. Empty if it does not exist. Raises StoreUnavailable as `text_of` does."""
    return sorted(name for name, is_folder in _listed(folder) if is_folder)


def _listed(folder: StoragePath) -> list[tuple[str, bool]]:
    """Name of each entry, and whether it is a folder. Links are not."""
    try:
        with asking(folder):
            if isinstance(folder, Path):
                return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in os.scandir(folder)]
            listed = folder.fs.ls(folder.path, detail=True)
    except (FileNotFoundError, NotADirectoryError):
        return []
    entries = [(entry["name"].rstrip("/"), entry["type"] == "directory") for entry in listed]
    # Spark marks the folder itself by an empty object.
    return [(path.rpartition("/")[2], is_folder) for path, is_folder in entries if path != folder.path.rstrip("/")]


def write_new(path: StoragePath, text: str) -> bool:
    """Writes a file unless it exists; of concurrent writers exactly one succeeds. Returns whether it was written. Raises StoreUnavailable."""
    try:
        with asking(path):
            if isinstance(path, Path):
                with path.open("x") as file:
                    file.write(text)
            else:
                path.fs.pipe_file(path.path, text.encode(), mode="create")
    except FileExistsError:
        return False
    return True


def write_whole(path: StoragePath, content: str | bytes) -> None:
    """Writes a file atomically: readers see the old or the new content, never a part, also after a power failure. Object stores guarantee this themselves.

    The partial file of a killed process is deleted by the next write of the file, an hour later or more. Raises StoreUnavailable when the
    object store does not answer.
    """
    content = content.encode() if isinstance(content, str) else content
    if not isinstance(path, Path):
        with asking(path):
            path.fs.pipe_file(path.path, content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for old_partial in path.parent.glob(f".{escape(path.name)}.????????.partial"):
        with suppress(FileNotFoundError):
            if old_partial.stat().st_mtime < time.time() - _LEFT_SECONDS:
                old_partial.unlink()
    # Hidden: pandas and Arrow read all other files of a folder. With a name of its own: two programs may write the file at once.
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
