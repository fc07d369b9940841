"""The logs of files that Spark keeps: of those that a source has found, and of those that a sink has written."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from infrastructure.errors import StreamgaugeError
from infrastructure.storage.paths import StoragePath, names_in, text_of

_ATTEMPTS = 5


def entries_of(log: StoragePath) -> list[dict[str, Any]]:
    """The lines of a log, in order: file N has those of batch N, N.compact those of all batches up to N. Empty if there is no log."""
    for _ in range(_ATTEMPTS):
        names = names_in(log)
        newest = max((int(name.removesuffix(".compact")) for name in names if name.endswith(".compact")), default=-1)
        later = [str(number) for number in sorted(int(name) for name in names if name.isdigit()) if number > newest]
        texts = [text_of(log / name) for name in [f"{newest}.compact"] * (newest >= 0) + later]
        if None not in texts:  # else Spark has compacted the log meanwhile
            try:
                return [_entry(line) for text in texts for line in (text or "").splitlines()[1:]]
            except ValueError as error:
                msg = f"{log} is damaged ({error}); restore it from a copy, or reset the query that wrote it"
                raise StreamgaugeError(msg) from error
    msg = f"files of {log} disappear while they are read; verify again"
    raise StreamgaugeError(msg)


def _entry(line: str) -> dict[str, Any]:
    entry = json.loads(line)
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        msg = "an entry has no path"
        raise ValueError(msg)  # noqa: TRY004 - as what is no JSON
    return entry


def path_of(entry: dict[str, Any]) -> Path:
    """The path of a file on disk."""
    return Path(unquote(urlsplit(entry["path"]).path))


def uri_of(entry: dict[str, Any]) -> str:
    """The path of a file on disk, or the URI of one in an object store, in which no character is encoded."""
    parts = urlsplit(entry["path"])
    return str(path_of(entry)) if parts.scheme == "file" else f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}"
