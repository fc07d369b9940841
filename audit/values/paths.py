"""Paths of files, for DuckDB."""

import re
from collections.abc import Iterable

from infrastructure.storage.paths import StoragePath


def duckdb_paths(paths: Iterable[StoragePath]) -> list[str]:
    """The paths as DuckDB takes them. It would read all files that match a path with `*`, `?` or `[`."""
    return [re.sub(r"[*?\[]", r"[\g<0>]", str(path)) for path in paths]
