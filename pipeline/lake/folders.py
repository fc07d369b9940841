"""Which folders of the lake are tables, by the names of folders alone: without Spark, which takes a second and 100 MB to import."""

from collections.abc import Iterator
from typing import Literal

from contract.storage.paths import StoragePath, folders_in

TableFormat = Literal["delta", "parquet"]
_MARKS: dict[str, TableFormat] = {"_delta_log": "delta", "_spark_metadata": "parquet"}
_INTERNAL = ("_", ".")


def table_folders(folder: StoragePath, below: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TableFormat]]:
    """Each table below `folder`, as the names of the folders that lead to it, and its format; folders that begin with `_` or `.` are internal.

    below: the names that lead to `folder` itself, which is a table only if there are any.
    """
    names = folders_in(folder)
    kind = next((kind for mark, kind in _MARKS.items() if mark in names), None)
    if kind is not None and below:
        yield below, kind
    elif kind is None:
        for name in names:
            if not name.startswith(_INTERNAL):
                yield from table_folders(folder / name, (*below, name))
