"""The files of the static tables that streams are joined with: those in `data/`, or the user's own."""

import glob
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import urlsplit

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file
from infrastructure.storage.paths import asking, remote_folder
from infrastructure.storage.temporary import temporary_folder

VARIABLE = "STREAMGAUGE_STATIC_TABLES"


def static_tables() -> dict[str, Path]:
    """The files in `data/`, by the names of their tables."""
    return {path.stem: path for path in sorted(data_file("device_locations.csv").parent.glob("*.csv"))}


def files_of(table: str, settings: Settings) -> list[Path]:
    """The CSV files that together hold the rows of a table. Those that are not on this machine are fetched at each call.

    Raises StreamgaugeError if there is none, or one cannot be fetched.
    """
    places = dict(entry.replace("=file://", "=", 1).split("=", 1) for entry in settings.static_tables.split())
    check_names(f"static table for {VARIABLE}", places, static_tables())
    place = places.get(table)
    if place is None:
        return [static_tables()[table]]
    files = _fetched(place, settings) if "://" in place else [Path(path) for path in _matches(place)]
    if not files:
        msg = f"{VARIABLE}: no file is at {place}; expected CSV files for {table}, at a path, in a folder, or at a pattern such as /data/*.csv"
        raise StreamgaugeError(msg)
    return files


def _matches(place: str) -> list[str]:
    path = Path(place).expanduser()
    return sorted(glob.glob(str(path / "*.csv" if path.is_dir() else path)))  # noqa: PTH207 - the pattern may be absolute


def _fetched(place: str, settings: Settings) -> list[Path]:
    folder = Path(mkdtemp(prefix="static-", dir=temporary_folder(settings.home)))
    contents = [_by_http(place)] if place.startswith("http") else _from_store(place, settings.aws_endpoint_url)
    files = [folder / f"{number:04}.csv" for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    return files


def _by_http(address: str) -> bytes:
    import httpx2

    from infrastructure.web.client import client, reason

    try:
        with client() as web:
            return web.get(address).raise_for_status().content
    except httpx2.HTTPError as error:
        msg = f"{VARIABLE}: {address} cannot be fetched ({reason(error)}); correct the address"
        raise StreamgaugeError(msg) from error


def _from_store(place: str, endpoint_url: str) -> list[bytes]:
    parts = urlsplit(place, allow_fragments=False)
    bucket = remote_folder(VARIABLE, f"{parts.scheme}://{parts.netloc}", endpoint_url)
    path = f"{bucket.path.rstrip('/')}/{parts.path.strip('/')}"
    with asking(bucket):
        is_folder = not glob.has_magic(path) and bucket.fs.isdir(path)
        return [bucket.fs.cat_file(file) for file in sorted(bucket.fs.glob(f"{path}/*.csv" if is_folder else path))]
