"""Finds the tables of the lake by folder names alone, without Spark, whose import takes a second and 100 MB."""

from collections.abc import Iterator
from typing import Literal

from contract.storage.paths import StoragePath, folders_in

TableFormat = Literal["delta", "parquet"]
_MARKS: dict[str, TableFormat] = {"_delta_log": "delta", "_spark_metadata": "parquet"}
_INTERNAL = ("_", ".")


def table_folders(folder: StoragePath, below: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TableFormat]]:
    """Each table below `folder`: the folder names that lead to it, and its format. Skips internal folders, which start with `_` or `.`.

    below: the folder names that lead to `folder`. Without any, `folder` itself is not a table.
    """
    names = folders_in(folder)
    kind = next((kind for mark, kind in _MARKS.items() if mark in names), None)
    if kind is not None and below:
        yield below, kind
    elif kind is None:
        for name in names:
            if not name.startswith(_INTERNAL):
                yield from table_folders(folder / name, (*below, name))
