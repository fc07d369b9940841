"""Downloads the locked jars once into the user's cache, verifies them, and works offline from then on."""

import os
import shutil
import tarfile
import threading
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass
from pathlib import Path

import httpx2
from filelock import FileLock
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from infrastructure.errors import StreamgaugeError
from infrastructure.java.coordinates import Coordinate
from infrastructure.lake_environment import HAS_DELTA
from infrastructure.output.terminal import can_redraw
from infrastructure.process.waiting import Reminder
from infrastructure.settings import Settings
from infrastructure.storage.downloads import draft_of, sha256
from infrastructure.text import size_text
from infrastructure.web.client import FAILURES, client, reason

SPARK = ("spark", "delta") if HAS_DELTA else ("spark",)
"""The bundles that each Spark session has on its class path."""
LOCK = Path(__file__).with_name("jars.lock")
_CHUNK_BYTES = 256 * 1024
_AT_ONCE = 4
_END_SECONDS = 1
_PAUSES_SECONDS = (0.5, 2)
"""The pauses before the second and the third attempt to fetch a file."""


@dataclass(frozen=True)
class LockedArtifact:
    """An artifact of the lock file, its hash and length."""

    coordinate: Coordinate
    sha256: str
    bytes: int


def locked(bundle: str, lock: Path = LOCK) -> list[LockedArtifact]:
    """The artifacts of a bundle ("spark", "kafka", "registry")."""
    rows = tomllib.loads(lock.read_text())["artifact"]
    return [LockedArtifact(Coordinate.parse(row["coordinate"]), row["sha256"], row["bytes"]) for row in rows if row["bundle"] == bundle]


def spark_bundles(settings: Settings) -> list[str]:
    """The bundles on Spark's class path. Includes Delta in its environment, and S3 support only if something is stored in S3."""
    return [*SPARK, "s3"] if settings.uses_s3 else [*SPARK]


def bundles(settings: Settings) -> list[str]:
    """All bundles of a complete platform with these settings."""
    return [*spark_bundles(settings), "kafka", "registry"]


def fetch(bundle: str, settings: Settings, lock: Path = LOCK) -> list[Path]:
    """The bundle's files in the cache. Downloads missing files and always verifies all of them against the lock.

    Raises StreamgaugeError for a wrong hash, a missing network or a full disk. Leaves no partial downloads.
    """
    lacking = missing(bundle, settings, lock)
    if lacking:
        place = settings.cache / "maven"
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(place, lacking, error) from error
    download = _Download(bundle, lacking)
    with download.bar:
        return download.in_threads(lambda artifact: _fetch_one(artifact, settings, download), locked(bundle, lock))


def missing(bundle: str, settings: Settings, lock: Path = LOCK) -> list[LockedArtifact]:
    """The artifacts of a bundle that are not in the cache."""
    return [artifact for artifact in locked(bundle, lock) if not path_of(artifact, settings).exists()]


def paths(bundle: str, settings: Settings) -> list[Path]:
    """Where the bundle's files are in the cache, whether they exist or not."""
    return [path_of(artifact, settings).absolute() for artifact in locked(bundle)]


def path_of(artifact: LockedArtifact, settings: Settings) -> Path:
    """Where the artifact is in the cache, whether it exists or not."""
    return settings.cache / "maven" / artifact.coordinate.repository_path


def unpacked(bundle: str, settings: Settings, lock: Path = LOCK) -> Path:
    """The cache folder with the contents of a bundle that is a single archive. Downloads and unpacks it if it is missing.

    Raises StreamgaugeError as `fetch` does. Safe for concurrent processes, a kill and a power cut: the folder is complete if it exists.
    """
    (artifact,) = locked(bundle, lock)
    folder = unpacked_folder(artifact, settings)
    if folder.exists():
        return folder
    (archive,) = fetch(bundle, settings, lock)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.exists():
                _unpack(archive, folder)
    except OSError as error:
        raise _unwritable(folder, [artifact], error) from error
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    partial = Path(f"{folder}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    with tarfile.open(archive) as files:
        # Early releases of Python 3.11 lack the filter; the archive's hash is verified anyway.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(partial)  # noqa: S202
    os.sync()  # else a power cut could leave the folder, and empty files in it
    partial.rename(folder)


def unpacked_folder(artifact: LockedArtifact, settings: Settings) -> Path:
    """Where in the cache an archive is unpacked. The archive is no longer needed afterwards."""
    return settings.cache.absolute() / "unpacked" / f"{artifact.coordinate.artifact}-{artifact.coordinate.version}-{artifact.sha256[:8]}"


def class_path(paths: Sequence[Path]) -> str:
    """`paths` as an argument of Java's -cp. Raises StreamgaugeError for a path with a colon, which separates two of them there."""
    absolute = [str(path.absolute()) for path in paths]
    if with_colon := next((path for path in absolute if ":" in path), None):
        msg = f"Java cannot use {with_colon}: a colon separates paths; choose a folder without one with STREAMGAUGE_CACHE, or install Streamgauge in one"
        raise StreamgaugeError(msg)
    return ":".join(absolute)


class _Download:
    """Downloads files, with progress over all of them: a bar on a terminal, otherwise an occasional line."""

    def __init__(self, bundle: str, missing: Sequence[LockedArtifact]) -> None:
        self.console, self.lock, self.ended = Console(stderr=True, soft_wrap=True, highlight=False), threading.Lock(), threading.Event()
        self.title = f"fetching {len(missing)} files for {bundle}, once" if len(missing) > 1 else f"fetching {bundle}, once"
        self.fetched, self.total = 0, sum(artifact.bytes for artifact in missing)
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self.bar = Progress(*columns, console=self.console, transient=True, disable=not (missing and can_redraw(self.console)))
        self.task = self.bar.add_task(self.title, total=self.total)
        self.lines = Reminder()
        if self.total and not can_redraw(self.console):
            self.console.print(f"{self.title}: {size_text(self.total)}")

    def in_threads(self, work: Callable[[LockedArtifact], Path], artifacts: Sequence[LockedArtifact]) -> list[Path]:
        """Maps `work` over `artifacts`, a few at a time. At a failure or an interrupt, the other downloads stop at their next chunk.

        The threads are daemons, so a thread that waits for a server does not block the program's exit.
        """
        places = threading.Semaphore(_AT_ONCE)

        def run(artifact: LockedArtifact, path: "Future[Path]") -> None:
            try:
                with places:
                    self._raise_if_ended()
                    path.set_result(work(artifact))
            except BaseException as error:
                path.set_exception(error)

        paths: list[Future[Path]] = [Future() for _ in artifacts]
        for artifact, path in zip(artifacts, paths, strict=True):
            threading.Thread(target=run, args=(artifact, path), daemon=True).start()
        try:
            for path in wait(paths, return_when=FIRST_EXCEPTION).done:
                path.result()
            return [path.result() for path in paths]
        except BaseException:
            self.ended.set()
            wait(paths, _END_SECONDS)  # they remove their partial downloads
            raise

    def fetch(self, url: str, path: Path) -> None:
        """Fetches `url` as the file `path`. A connection that fails or breaks off is tried again after each of _PAUSES_SECONDS."""
        for pause_seconds in (*_PAUSES_SECONDS, None):
            path.write_bytes(b"")
            try:
                self._receive(url, path)
            except httpx2.TransportError:
                if pause_seconds is None:
                    raise
                self._advance(-path.stat().st_size)
                self.ended.wait(pause_seconds)
            else:
                return

    def _receive(self, url: str, path: Path) -> None:
        with client() as web, web.stream("GET", url) as response, path.open("wb") as file:
            response.raise_for_status()
            for chunk in response.iter_bytes(_CHUNK_BYTES):
                self._raise_if_ended()
                file.write(chunk)
                self._advance(len(chunk))

    def _advance(self, count: int) -> None:
        with self.lock:
            self.fetched += count
            self.bar.advance(self.task, count)
            if not can_redraw(self.console) and self.lines.is_due():
                self.console.print(f"{self.title}: {size_text(self.fetched)} of {size_text(self.total)}")

    def _raise_if_ended(self) -> None:
        if self.ended.is_set():
            raise InterruptedError


def _fetch_one(artifact: LockedArtifact, settings: Settings, download: _Download) -> Path:
    path = path_of(artifact, settings)
    if path.exists() and sha256(path) == artifact.sha256:
        return path
    url = f"{settings.maven_url.rstrip('/')}/{artifact.coordinate.repository_path}"
    try:
        with draft_of(path) as draft:
            download.fetch(url, draft)
            if sha256(draft) != artifact.sha256:
                msg = f"{url} is not the file that jars.lock names (SHA-256 {artifact.sha256} expected); it was deleted. Try again; if this happens again, the repository or a proxy modifies files"
                raise StreamgaugeError(msg)
    except FAILURES as error:
        msg = f"could not fetch {url} ({reason(error)}); go online once, or name a mirror of Maven Central with STREAMGAUGE_MAVEN_URL. After that everything runs offline"
        raise StreamgaugeError(msg) from error
    except OSError as error:
        raise _unwritable(path, [artifact], error) from error
    return path


def _unwritable(path: Path, artifacts: Sequence[LockedArtifact], error: OSError) -> StreamgaugeError:
    size = size_text(sum(artifact.bytes for artifact in artifacts))
    return StreamgaugeError(
        f"could not write {path}: {error.strerror}; {size} are needed there, or choose another folder with STREAMGAUGE_CACHE"
    )
