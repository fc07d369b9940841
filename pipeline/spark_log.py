"""The logs by which Spark's file source and file sink remember files: an entry a file, a numbered log file a batch, a summary every ten."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from streamgauge.errors import StreamgaugeError
from streamgauge.storage import StoragePath, asking, names_in

_SUMMARY = ".compact"

Entry = dict[str, Any]
"""A line of the log: path (a URI), and more that is Spark's."""


@dataclass(frozen=True)
class SparkLog:
    """The log in `folder`: `N` names the files of batch N, `N.compact` those of all batches up to N."""

    folder: StoragePath

    @property
    def newest_summary(self) -> StoragePath | None:
        """The file that names all files up to its batch; None before there is one."""
        numbers = [int(number) for name in names_in(self.folder) if (number := name.removesuffix(_SUMMARY)) != name and number.isdigit()]
        return self.folder / f"{max(numbers)}{_SUMMARY}" if numbers else None

    def live(self) -> list[Entry]:
        """All that it names, in order; nothing where there is no log. Raises FileNotFoundError when a summary takes the place of what is read."""
        newest = self.newest_summary
        since = -1 if newest is None else int(newest.name.removesuffix(_SUMMARY))
        batches = sorted(number for name in names_in(self.folder) if name.isdigit() and (number := int(name)) > since)
        files = ([] if newest is None else [newest]) + [self.folder / str(number) for number in batches]
        return [entry for file in files for entry in entries(file)]


def entries(log_file: StoragePath) -> list[Entry]:
    """What a file of the log names; its first line is a version. Raises StreamgaugeError when it is damaged."""
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
