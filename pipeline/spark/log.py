"""The file logs of Spark's file source and file sink: one entry per file, one log file per batch, compacted every ten batches."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from contract.errors import StreamgaugeError
from contract.storage.paths import StoragePath, asking, names_in

_SUMMARY = ".compact"

Entry = dict[str, Any]
"""A line of the log: path (a URI), and fields internal to Spark."""


def live_entries(log: StoragePath) -> list[Entry]:
    """The entries of a log in order; empty if there is no log. File `N` has batch N, file `N.compact` all batches up to N.

    Raises FileNotFoundError when Spark compacts the log during the read, and StreamgaugeError when a log file is damaged.
    """
    names = names_in(log)
    summaries = [int(number) for name in names if (number := name.removesuffix(_SUMMARY)) != name and number.isdigit()]
    newest = max(summaries, default=-1)
    batches = sorted(int(name) for name in names if name.isdigit() and int(name) > newest)
    files = [f"{newest}{_SUMMARY}"] * bool(summaries) + [str(number) for number in batches]
    return [entry for name in files for entry in _entries(log / name)]


def _entries(log_file: StoragePath) -> list[Entry]:
    """The entries of a log file; its first line is a version."""
    try:
        with asking(log_file):
            text = log_file.read_text()
        return [json.loads(line) for line in text.splitlines()[1:]]
    except ValueError as error:
        msg = f"{log_file} is damaged ({error}); restore it from a copy, or reset the query that wrote it"
        raise StreamgaugeError(msg) from error


def path_of(uri: str) -> Path:
    """The local path of a file by its URI."""
    return Path(unquote(urlsplit(uri).path))
