"""Fetches the locked jars once into the user's cache, checks them, and uses them offline from then on."""

import tarfile
import tempfile
import threading
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pooch
import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from streamgauge.errors import StreamgaugeError
from streamgauge.local.coordinates import Coordinate
from streamgauge.settings import Settings

pooch.get_logger().setLevel("ERROR")  # it would print a line a file, over the progress bar

LOCK = Path(__file__).with_name("jars.lock")
_CHUNK_BYTES = 256 * 1024
_TIMEOUT_SECONDS = (10, 60)


@dataclass(frozen=True)
class LockedArtifact:
    """One row of the lock: what to fetch, its hash and length, and what it is for."""

    bundle: str
    coordinate: Coordinate
    sha256: str
    bytes: int
    purpose: str


def locked(bundle: str, lock: Path = LOCK) -> list[LockedArtifact]:
    """The artifacts of one bundle ("spark", "kafka", "registry")."""
    rows = tomllib.loads(lock.read_text())["artifact"]
    return [
        LockedArtifact(row["bundle"], Coordinate.parse(row["coordinate"]), row["sha256"], row["bytes"], row["for"])
        for row in rows
        if row["bundle"] == bundle
    ]


def spark_bundles(settings: Settings) -> list[str]:
    """The bundles that are on Spark's class path: those for an S3 only where something is in one."""
    return ["spark", "s3"] if settings.uses_s3 else ["spark"]


def bundles(settings: Settings) -> list[str]:
    """All bundles that a whole platform with these settings uses."""
    return [*spark_bundles(settings), "kafka", "registry"]


def fetch(bundle: str, settings: Settings, lock: Path = LOCK) -> list[Path]:
    """The bundle's files in the cache, fetched where they are missing and always checked against the lock.

    Raises StreamgaugeError for a wrong hash, no network and a full disk; nothing half-fetched stays behind.
    """
    artifacts = locked(bundle, lock)
    folder = settings.cache / "maven"
    missing = [artifact for artifact in artifacts if not (folder / artifact.coordinate.repository_path).exists()]
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not missing,
    ) as progress:
        total = sum(artifact.bytes for artifact in missing)
        download = _Download(progress, progress.add_task(f"fetching {len(missing)} files for {bundle}, once", total=total))
        with ThreadPoolExecutor(max_workers=4) as pool:
            return list(pool.map(lambda artifact: _fetch_one(artifact, folder, settings.maven_url, download), artifacts))


def unpacked(bundle: str, settings: Settings, lock: Path = LOCK) -> Path:
    """The folder in the cache that holds what is in the archive of a bundle of one archive; fetched and unpacked where it is missing.

    Raises StreamgaugeError as `fetch` does. Of two that unpack at once, one is first, and both have the whole folder.
    """
    (artifact,) = locked(bundle, lock)
    folder = unpacked_folder(artifact, settings)
    if folder.exists():
        return folder
    (archive,) = fetch(bundle, settings, lock)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
            whole = Path(draft, "whole")
            with tarfile.open(archive) as files:
                # The first Pythons of 3.11 have no filter; what is unpacked was checked by its hash.
                files.extraction_filter = getattr(tarfile, "data_filter", None)
                files.extractall(whole)  # noqa: S202
            if not folder.exists():
                whole.rename(folder)
    except OSError as error:
        if not folder.exists():  # it does when another was first
            raise _unwritable(folder, artifact, error) from error
    return folder


def unpacked_folder(artifact: LockedArtifact, settings: Settings) -> Path:
    """Where in the cache an archive is unpacked. Once it is, the archive is needed no more."""
    return settings.cache.absolute() / "unpacked" / f"{artifact.coordinate.artifact}-{artifact.coordinate.version}-{artifact.sha256[:8]}"


def class_path(paths: Sequence[Path]) -> str:
    """`paths` as Java's -cp takes them."""
    return ":".join(str(path.absolute()) for path in paths)


class _Download:
    """A pooch downloader that reports to one progress bar over all files."""

    def __init__(self, progress: Progress, task: int) -> None:
        self.progress, self.task, self.lock = progress, task, threading.Lock()

    def __call__(self, url: str, output_file: str | IO[bytes], _pooch: object) -> None:
        with requests.get(url, stream=True, timeout=_TIMEOUT_SECONDS) as response, Path(str(output_file)).open("wb") as file:
            response.raise_for_status()
            for chunk in response.iter_content(_CHUNK_BYTES):
                file.write(chunk)
                with self.lock:
                    self.progress.advance(self.task, len(chunk))  # type: ignore[arg-type]


def _fetch_one(artifact: LockedArtifact, folder: Path, maven_url: str, download: _Download) -> Path:
    path = folder / artifact.coordinate.repository_path
    url = f"{maven_url.rstrip('/')}/{artifact.coordinate.repository_path}"
    if path.exists() and pooch.file_hash(str(path)) != artifact.sha256:
        path.unlink()
    try:
        pooch.retrieve(url, known_hash=f"sha256:{artifact.sha256}", fname=path.name, path=path.parent, downloader=download)
    except requests.RequestException as error:
        reason = f"HTTP {error.response.status_code}" if error.response is not None else type(error).__name__
        msg = f"could not fetch {url} ({reason}); go online once, or name a mirror of Maven Central with STREAMGAUGE_MAVEN_URL. After that everything runs offline"
        raise StreamgaugeError(msg) from error
    except ValueError as error:
        msg = f"{url} is not the file that jars.lock names (SHA-256 {artifact.sha256} expected); it was thrown away. Try again; if it stays so, the repository or a proxy on the way changes files"
        raise StreamgaugeError(msg) from error
    except OSError as error:
        raise _unwritable(path, artifact, error) from error
    return path


def _unwritable(path: Path, artifact: LockedArtifact, error: OSError) -> StreamgaugeError:
    return StreamgaugeError(
        f"could not write {path}: {error.strerror}; {artifact.bytes / 1e6:.0f} MB are needed there, or choose another folder with STREAMGAUGE_CACHE"
    )
