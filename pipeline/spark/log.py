"""The logs by which Spark's file source and file sink remember files: an entry a file, a numbered log file a batch, a summary every ten."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from contract.errors import StreamgaugeError
from contract.storage.paths import StoragePath, asking, names_in

_SUMMARY = ".compact"

Entry = dict[str, Any]
"""A line of the log: path (a URI), and more that is Spark's."""


def live_entries(log: StoragePath) -> list[Entry]:
    """The files that a log names, in order; none where there is no log. `N` names those of batch N, `N.compact` those of all batches up to N.

    Raises FileNotFoundError when a summary takes the place of what is read, and StreamgaugeError when a file of the log is damaged.
    """
    names = names_in(log)
    summaries = [int(number) for name in names if (number := name.removesuffix(_SUMMARY)) != name and number.isdigit()]
    newest = max(summaries, default=-1)
    batches = sorted(int(name) for name in names if name.isdigit() and int(name) > newest)
    files = [f"{newest}{_SUMMARY}"] * bool(summaries) + [str(number) for number in batches]
    return [entry for name in files for entry in _entries(log / name)]


def _entries(log_file: StoragePath) -> list[Entry]:
    """What a file of the log names; its first line is a version."""
    try:
        with asking(log_file):
            text = log_file.read_text()
        return [json.loads(line) for line in text.splitlines()[1:]]
    except ValueError as error:
        msg = f"{log_file} is not as Spark writes it ({error}); bring it back from a copy, or reset the query that has written it"
        raise StreamgaugeError(msg) from error


def path_of(entry: Entry) -> Path:
    """The local path of a file that the log names."""
    return Path(unquote(urlsplit(entry["path"]).path))
