"""The files of the static tables that streams are joined with: those in `data/`, or the user's own."""

import glob
from contextlib import suppress
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file
from infrastructure.storage.downloads import draft_of
from infrastructure.storage.paths import asking, remote_folder, write_whole
from infrastructure.storage.temporary import temporary_folder

VARIABLE = "STREAMGAUGE_STATIC_TABLES"


def static_tables() -> dict[str, Path]:
    """The files in `data/`, by the names of their tables."""
    return {path.stem: path for path in sorted(data_file("device_locations.csv").parent.glob("*.csv"))}


def files_of(table: str, settings: Settings) -> list[Path]:
    """The CSV files that together hold the rows of a table. Those that are not on this machine are fetched at each call, and Parquet becomes CSV.

    Raises StreamgaugeError if there is none, or one cannot be fetched, or is no Parquet.
    """
    places = dict(entry.replace("=file://", "=", 1).split("=", 1) for entry in settings.static_tables.split())
    check_names(f"static table for {VARIABLE}", places, static_tables())
    place = places.get(table)
    if place is None:
        return [static_tables()[table]]
    files = _fetched(table, place, settings) if "://" in place else _matches(place)
    if not files:
        msg = f"{VARIABLE}: no file is at {place}; expected CSV or Parquet files for {table}, at a path, in a folder, or at a pattern such as /data/*.csv"
        raise StreamgaugeError(msg)
    if not any(_is_parquet(file) for file in files):
        return files
    folder = _folder(table, settings)
    return [_as_csv(file, folder / f"{number:04}-{file.stem}.csv") if _is_parquet(file) else file for number, file in enumerate(files)]


def _is_read(file: PurePath) -> bool:
    """Whether a file of a folder is read."""
    return file.suffix.lower() in {".csv", ".parquet"}


def _is_parquet(file: PurePath) -> bool:
    return file.suffix.lower() == ".parquet"


def _as_csv(file: Path, csv: Path) -> Path:
    """Writes the columns of a Parquet file that a text can hold as texts, so that the queries and the audit read the same; null becomes empty."""
    import pyarrow as pa
    from pyarrow.csv import write_csv
    from pyarrow.parquet import ParquetFile

    columns = []
    try:
        found = ParquetFile(file).read()
        for name, column in zip(found.column_names, found.columns, strict=True):
            with suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):  # nested, or bytes that are no UTF-8
                columns.append((name, column.cast(pa.string())))
        with draft_of(csv) as draft:
            write_csv(pa.table([column for _, column in columns], [name for name, _ in columns]), draft)
    except (OSError, pa.ArrowException) as error:
        msg = f"{VARIABLE}: {file} cannot be read ({str(error).partition(chr(10))[0]}); expected Parquet, as its name says"
        raise StreamgaugeError(msg) from error
    return csv


def _folder(table: str, settings: Settings) -> Path:
    """For the files of a table, which each call replaces: a query reads its tables at each of its starts."""
    return temporary_folder(settings.home) / "static" / table


def _matches(place: str) -> list[Path]:
    path = Path(place).expanduser()
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(path)))  # noqa: PTH207 - the pattern may be absolute
    return sorted(file for file in found if not path.is_dir() or _is_read(file))


def _fetched(table: str, place: str, settings: Settings) -> list[Path]:
    folder = _folder(table, settings)
    contents = {urlsplit(place).path: _by_http(place)} if place.startswith("http") else _from_store(place, settings.endpoint_of(place))
    files = [folder / f"{number:04}{'.parquet' if _is_parquet(PurePath(name)) else '.csv'}" for number, name in enumerate(contents)]
    for file, content in zip(files, contents.values(), strict=True):
        write_whole(file, content)
    return files


def _by_http(address: str) -> bytes:
    from infrastructure.web.client import FAILURES, client, reason

    try:
        with client() as web:
            return web.get(address).raise_for_status().content
    except FAILURES as error:
        shown = address.partition("?")[0]  # the rest may be a signature
        msg = f"{VARIABLE}: {shown} cannot be fetched ({reason(error)}); correct the address"
        raise StreamgaugeError(msg) from error


def _from_store(place: str, endpoint_url: str) -> dict[str, bytes]:
    """The content of each file, by its path."""
    parts = urlsplit(place, allow_fragments=False)
    bucket = remote_folder(VARIABLE, f"{parts.scheme}://{parts.netloc}", endpoint_url)
    path = f"{bucket.path.rstrip('/')}/{parts.path.strip('/')}"
    with asking(bucket):
        if glob.has_magic(path) or not bucket.fs.isdir(path):
            found = bucket.fs.glob(path)
        else:
            found = [file for file in bucket.fs.glob(f"{path}/*") if _is_read(PurePath(file))]
        return {file: bucket.fs.cat_file(file) for file in sorted(found)}
