"""Folders on a disk or in an object store: what pathlib can do, and the little that differs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from contract.errors import StreamgaugeError

if TYPE_CHECKING:
    from upath import UPath

StoragePath: TypeAlias = Union[Path, "UPath"]
"""Both write and join as pathlib does; str() of one is what Spark calls it: a path, or s3a://bucket/folder."""

OBJECT_STORES = {"s3a": "s3fs", "abfss": "adlfs", "gs": "gcsfs"}
"""By the scheme of an address, the Python package that reads it."""


class StoreAway(StreamgaugeError):  # noqa: N818 - as KafkaAway
    """An object store does not answer, or not as it should."""


@dataclass(frozen=True)
class StoredFile:
    """A file and what its storage says of it. modified: seconds since 1970."""

    path: StoragePath
    bytes: int
    modified: float


@cache
def remote_folder(variable: str, uri: str, endpoint_url: str = "") -> "UPath":
    """The folder of an object store at `uri`, which the setting `variable` names; endpoint_url: of an S3 that is not Amazon's.

    Raises StreamgaugeError when the package that reads it is not installed, and when the store does not let us in.
    """
    from upath import UPath

    scheme = uri.partition("://")[0]
    package = OBJECT_STORES[scheme]
    try:
        folder = UPath(uri, use_listings_cache=False, **({"endpoint_url": endpoint_url} if endpoint_url else {}))
        folder.fs.exists(folder.path)
    except ImportError as error:
        extra = "'streamgauge[s3]'" if scheme == "s3a" else package
        msg = f"{variable}={uri} is read with the Python package {package}, which is not installed: `pip install {extra}`"
        raise StreamgaugeError(msg) from error
    except Exception as error:  # each store has errors of its own, which have no class in common
        msg = f"{variable}={uri} cannot be reached{f' at {endpoint_url}' if endpoint_url else ''}: {type(error).__name__}: {error}; see that its address is right and that the environment holds the credentials (docs/object-stores.md)"
        raise StreamgaugeError(msg) from error
    return folder


@contextmanager
def asking(path: StoragePath) -> Iterator[None]:
    """Raises StoreAway for what an object store fails with meanwhile, but for a file that is not there, or is; on a disk it changes nothing."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except Exception as error:  # each store has errors of its own, which have no class in common
        if isinstance(path, Path):
            raise
        msg = f"{path} cannot be reached: {type(error).__name__}: {error}"
        raise StoreAway(msg) from error


def text_of(path: StoragePath) -> str | None:
    """What the file holds; None when there is none. Raises StoreAway when the object store does not answer."""
    try:
        with asking(path):
            return path.read_text()
    except FileNotFoundError:
        return None


def names_in(folder: StoragePath) -> list[str]:
    """The names of files and folders in `folder`, in order; none when there is no such folder. Raises StoreAway as `text_of` does."""
    try:
        with asking(folder):
            if isinstance(folder, Path):
                return sorted(entry.name for entry in folder.iterdir())
            return sorted(name for name, _ in _listed(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def folders_in(folder: StoragePath) -> list[str]:
    """The names of the folders in `folder`, in order; none when there is no such folder. Raises StoreAway as `text_of` does."""
    try:
        if isinstance(folder, Path):
            return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
        with asking(folder):
            return sorted(name for name, kind in _listed(folder) if kind == "directory")
    except FileNotFoundError:
        return []


def _listed(folder: "UPath") -> Iterator[tuple[str, str]]:
    """Name and type of what is in a folder of an object store; not the empty object by which Spark marks the folder itself."""
    for told in folder.fs.ls(folder.path, detail=True):
        path = told["name"].rstrip("/")
        if path != folder.path.rstrip("/"):
            yield path.rpartition("/")[2], told["type"]


def files_below(folder: StoragePath, *, leaving_out: frozenset[str] = frozenset()) -> Iterator[StoredFile]:
    """All files in `folder` and below it, but those in folders of the names `leaving_out`; links are not followed. Raises StoreAway too."""
    if not isinstance(folder, Path):
        with asking(folder):
            found = folder.fs.find(folder.path, detail=True)
        for name, told in found.items():
            below = name.removeprefix(f"{folder.path.rstrip('/')}/")
            if not leaving_out & set(below.split("/")[:-1]):
                modified = told.get("LastModified") or folder.fs.modified(name)
                yield StoredFile(folder / below, told["size"], modified.timestamp())
        return
    for where, below, names in os.walk(folder):
        below[:] = [name for name in below if name not in leaving_out]
        for name in names:
            path = Path(where, name)
            try:
                status = path.stat()
            except FileNotFoundError:  # gone meanwhile
                continue
            yield StoredFile(path, status.st_size, status.st_mtime)


def write_new(path: StoragePath, text: str) -> bool:
    """Writes a file if there is none; returns whether it has: of several that try at the same time, one does. Raises StoreAway as `text_of` does."""
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


def write_whole(path: StoragePath, text: str) -> None:
    """Writes a file that shows the old text or the new one, never a part: an object store does so of itself."""
    if not isinstance(path, Path):
        path.write_text(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(path)
