"""The logs by which Spark's file source and file sink remember files: an entry a file, a numbered log file a batch, a summary every ten."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from streamgauge.errors import StreamgaugeError

Entry = dict[str, Any]
"""A line of the log: path (a URI), and more that is Spark's."""


@dataclass(frozen=True)
class SparkLog:
    """The log in `folder`: `N` names the files of batch N, `N.compact` those of all batches up to N."""

    folder: Path

    @property
    def newest_summary(self) -> Path | None:
        """The file that names all files up to its batch; None before there is one."""
        numbers = [int(path.stem) for path in self.folder.glob("*.compact") if path.stem.isdigit()]
        return self.folder / f"{max(numbers)}.compact" if numbers else None

    def live(self) -> list[Entry]:
        """All that it names, in order; nothing where there is no log. Raises FileNotFoundError when a summary takes the place of what is read."""
        newest = self.newest_summary
        since = -1 if newest is None else int(newest.stem)
        batches = sorted(
            (path for path in self.folder.glob("*") if path.name.isdigit() and int(path.name) > since), key=lambda path: int(path.name)
        )
        return [entry for path in ([] if newest is None else [newest]) + batches for entry in entries(path)]


def entries(log_file: Path) -> list[Entry]:
    """What a file of the log names; its first line is a version. Raises StreamgaugeError when it is damaged."""
    try:
        return [json.loads(line) for line in log_file.read_text().splitlines()[1:]]
    except ValueError as error:
        msg = f"{log_file} is not as Spark writes it ({error}); bring it back from a copy, or reset the query that has written it"
        raise StreamgaugeError(msg) from error


def path_of(entry: Entry) -> Path:
    """The local path of a file that the log names."""
    return Path(unquote(urlsplit(entry["path"]).path))
