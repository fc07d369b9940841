"""The files of a table in the lake that count: those that its log names. A file that no log names is of a batch that did not end."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import duckdb
from pyarrow import parquet

from audit.reading.spark_logs import entries_of, path_of
from audit.values.paths import duckdb_paths
from infrastructure.errors import StreamgaugeError
from infrastructure.storage.paths import StoragePath, asking, names_in, text_of

_COMMIT, _CHECKPOINT = re.compile(r"(\d{20})\.json"), re.compile(r"(\d{20})\.checkpoint(\.\d+\.\d+)?\.parquet")


def parquet_files(folder: StoragePath) -> list[StoragePath]:
    """By the log of Spark's file sink."""
    return [path_of(entry) for entry in entries_of(folder / "_spark_metadata")]  # which is never in an object store


def delta_files(folder: StoragePath) -> list[StoragePath]:
    """By the log of Delta: the last checkpoint has the files of all commits before it, and each later commit adds and removes some.

    Raises StreamgaugeError for a table whose rows are deleted without writing their file again.
    """
    live: dict[str, None] = {}
    for action in _actions(folder / "_delta_log"):
        if removed := action.get("remove"):
            live.pop(removed["path"], None)
        if added := action.get("add"):
            if added.get("deletionVector"):
                msg = f"{folder} has deletion vectors, which the audit does not read; run `REORG TABLE ... APPLY (PURGE)`"
                raise StreamgaugeError(msg)
            live[added["path"]] = None
    return [folder / unquote(path) for path in live]


def _actions(log: StoragePath) -> Iterator[dict[str, Any]]:
    """What the log says, in order."""
    names = names_in(log)
    checkpoints = [(int(match.group(1)), match.group()) for name in names if (match := _CHECKPOINT.fullmatch(name))]
    newest = max((number for number, _ in checkpoints), default=-1)
    commits = sorted(name for name in names if (match := _COMMIT.fullmatch(name)) and int(match.group(1)) > newest)
    for name in (name for number, name in checkpoints if number == newest):
        with asking(log), (log / name).open("rb") as file:
            for action in parquet.read_table(file, columns=["metaData", "add"]).to_pylist():
                yield {name: value for name, value in action.items() if value}
    for name in commits:
        # Not `splitlines`: the smallest and greatest texts of a file are there, and may hold other line breaks, such as U+2028.
        yield from map(json.loads, filter(None, (text_of(log / name) or "").split("\n")))


def delta_rows(folder: StoragePath, files: Sequence[StoragePath], database: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """The rows in files of a Delta table. Its log may have given its columns, and their fields, other names in files.

    Raises StreamgaugeError for a time that is not of the years 1 to 9999.
    """
    if not files:
        return []
    table = database.sql("FROM read_parquet(?, union_by_name = true)", params=[duckdb_paths(files)]).to_arrow_table()
    try:
        rows = table.to_pylist()
    except (OverflowError, ValueError) as error:
        msg = f"{folder} has a time that is not of the years 1 to 9999 ({error}), which the audit cannot compare; correct the row, or `streamgauge reset` the query of the table"
        raise StreamgaugeError(msg) from error
    names = delta_names(folder)
    return [_renamed(row, names) for row in rows]


def _renamed(value: Any, names: dict[str, Any]) -> Any:  # noqa: ANN401 - what a table holds
    """The value with the names of the table for those of its files."""
    if isinstance(value, list):
        return [_renamed(field, names) for field in value]
    if not isinstance(value, dict):
        return value
    return {names.get(name, (name, {}))[0]: _renamed(field, names.get(name, (name, {}))[1]) for name, field in value.items()}


def delta_names(folder: StoragePath) -> dict[str, Any]:
    """The names of a Delta table's columns by those in its files, each with the same of its fields: {"col-1": ("a b", {})}."""
    texts = [action["metaData"]["schemaString"] for action in _actions(folder / "_delta_log") if action.get("metaData")]
    return _names_in(json.loads(texts[-1])) if texts else {}


def _names_in(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type in Delta's JSON
    if not isinstance(kind, dict):
        return {}
    if kind.get("type") == "array":
        return _names_in(kind["elementType"])
    return {
        field["metadata"].get("delta.columnMapping.physicalName", field["name"]): (field["name"], _names_in(field["type"]))
        for field in kind.get("fields", ())
    }
