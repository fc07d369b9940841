"""Fetches a month of TLC's trip records once into the cache. What was fetched before a failure is kept, and the rest asked for by HTTP Range."""

import errno
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
from filelock import FileLock
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from streamgauge.errors import StreamgaugeError

TLC_URL = "https://d37ci6vzurychx.cloudfront.net/trip-data"
"""Where TLC publishes its trip records."""
FRUITLESS_ATTEMPTS = 3
"""So many attempts in a row may bring nothing; any progress starts the count anew."""

_MONTH = re.compile(r"20\d\d-(0[1-9]|1[0-2])")
_CHUNK_BYTES = 64 * 1024
_TIMEOUT_SECONDS = (10, 60)
_OTHER_SOURCES = "use a file that is here with --file, or leave out --month for the simulation"


class _BrokenOffError(Exception):
    """The connection ended before the file did."""


@dataclass(frozen=True)
class _Part:
    """The beginning of a file, and the ETag of the file that it is the beginning of."""

    path: Path

    @property
    def etag_path(self) -> Path:
        return self.path.with_suffix(".etag")

    @property
    def size_bytes(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def resuming_headers(self) -> dict[str, str]:
        """Asks for the rest, provided that it is still the same file."""
        if not self.size_bytes or not self.etag_path.exists():
            return {}
        return {"Range": f"bytes={self.size_bytes}-", "If-Range": self.etag_path.read_text()}

    def begin(self, etag: str | None) -> None:
        """Forgets what there is; without an ETag of the new file, it cannot be resumed later."""
        self.path.unlink(missing_ok=True)
        self.etag_path.unlink(missing_ok=True)
        if etag is not None and not etag.startswith("W/"):
            self.etag_path.write_text(etag)

    def finish(self, path: Path) -> None:
        """The part is the file."""
        self.path.replace(path)
        self.etag_path.unlink(missing_ok=True)


def fetch_month(month: str, cache: Path, console: Console, *, url: str = TLC_URL, pause_seconds: float = 1.0) -> Path:
    """The Parquet file of `month` ("2024-03") in the folder `cache`/taxi, fetched if it is not there.

    pause_seconds: before an attempt that follows a fruitless one. Raises StreamgaugeError for a month that is none or that TLC does not
    have, without a network, and for a full disk. A broken-off download stays as a .part file, and the next call goes on with it.
    """
    if not _MONTH.fullmatch(month):
        msg = f"--month is {month!r}; expected a year and a month, such as 2024-03"
        raise StreamgaugeError(msg)
    name = f"green_tripdata_{month}.parquet"
    path = cache / "taxi" / name
    with _told_by_name(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            if not path.exists():
                part = _Part(path.with_suffix(".part"))
                _fetch(f"{url}/{name}", part, console, pause_seconds)
                part.finish(path)
    return path


def _fetch(url: str, part: _Part, console: Console, pause_seconds: float) -> None:
    """Fills `part` until it is whole, over as many connections as it takes."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"fetching {url.rpartition('/')[2]}", total=None)
        fruitless = 0
        while True:
            before_bytes = part.size_bytes
            try:
                _fetch_rest(url, part, progress, task)
            except (requests.RequestException, _BrokenOffError) as error:
                fruitless = 0 if part.size_bytes > before_bytes else fruitless + 1
                if fruitless == FRUITLESS_ATTEMPTS:
                    kept = f"; {part.size_bytes / 1e6:.1f} MB are kept, and the same command goes on from there" if part.size_bytes else ""
                    msg = f"could not fetch {url} ({_reason(error)}){kept}; {_OTHER_SOURCES}"
                    raise StreamgaugeError(msg) from error
                time.sleep(pause_seconds if fruitless else 0)
            else:
                return


def _fetch_rest(url: str, part: _Part, progress: Progress, task: TaskID) -> None:
    """One connection's worth of the file."""
    headers = {"Accept-Encoding": "identity", **part.resuming_headers()}
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_SECONDS) as response:
        _check(response, url, part)
        if response.status_code != requests.codes.partial_content:
            part.begin(response.headers.get("ETag"))
        length = response.headers.get("Content-Length")
        total = part.size_bytes + int(length) if length else None
        progress.update(task, completed=part.size_bytes, total=total)
        with part.path.open("ab") as file:
            for chunk in response.iter_content(_CHUNK_BYTES):
                file.write(chunk)
                progress.advance(task, len(chunk))
    if total is not None and part.size_bytes < total:
        raise _BrokenOffError


def _check(response: requests.Response, url: str, part: _Part) -> None:
    """Raises what a refusal means."""
    status = response.status_code
    if status == requests.codes.requested_range_not_satisfiable:
        part.begin(None)
        raise _BrokenOffError
    if status in {requests.codes.forbidden, requests.codes.not_found}:
        msg = f"there is no {url} (HTTP {status}); TLC publishes a month about two months after its end; name another --month, or {_OTHER_SOURCES}"
        raise StreamgaugeError(msg)
    if not response.ok:
        msg = f"could not fetch {url} (HTTP {status}); try again later, or {_OTHER_SOURCES}"
        raise StreamgaugeError(msg)


def _reason(error: Exception) -> str:
    return "the connection broke off" if isinstance(error, _BrokenOffError) else type(error).__name__


@contextmanager
def _told_by_name(path: Path) -> Iterator[None]:
    """Turns the errors of writing into one that names the file."""
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or type(error).__name__
        msg = f"could not write {path}: {reason}; free some space, or choose another folder with STREAMGAUGE_CACHE"
        raise StreamgaugeError(msg) from error
