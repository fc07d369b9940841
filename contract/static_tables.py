"""The files of the static tables that streams are joined with: those in `data/`, or the user's own."""

import glob
import hashlib
import io
from contextlib import suppress
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from infrastructure.errors import StreamgaugeError, check_names
from infrastructure.settings import Settings
from infrastructure.storage.data_files import data_file
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
    files = _fetched(place, settings) if "://" in place else _matches(place)
    if not files:
        msg = f"{VARIABLE}: no file is at {place}; expected CSV or Parquet files for {table}, at a path, in a folder, or at a pattern such as /data/*.csv"
        raise StreamgaugeError(msg)
    return [_kept(number, _as_csv(file), ".csv", settings) if _is_parquet(file) else file for number, file in enumerate(files)]


def _is_read(file: PurePath) -> bool:
    """Whether a file of a folder is read."""
    return file.suffix.lower() in {".csv", ".parquet"}


def _is_parquet(file: PurePath) -> bool:
    return file.suffix.lower() == ".parquet"


def _as_csv(file: Path) -> bytes:
    """The columns of a Parquet file that a text can hold as texts, so that the queries and the audit read the same; null becomes empty."""
    import pyarrow as pa
    from pyarrow.csv import write_csv
    from pyarrow.parquet import ParquetFile

    columns, csv = [], io.BytesIO()
    try:
        found = ParquetFile(file).read()
        for name, column in zip(found.column_names, found.columns, strict=True):
            with suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):  # nested, or bytes that are no UTF-8
                columns.append((name, column.cast(pa.string())))
        write_csv(pa.table([column for _, column in columns], [name for name, _ in columns]), csv)
    except (OSError, pa.ArrowException) as error:
        msg = f"{VARIABLE}: {file} cannot be read ({str(error).partition(chr(10))[0]}); expected Parquet, as its name says"
        raise StreamgaugeError(msg) from error
    return csv.getvalue()


def _kept(number: int, content: bytes, ending: str, settings: Settings) -> Path:
    """A file with that content, named after it: a query reads its files as they were at its start, also while another one starts.

    number: of the file in its table, in which two may be the same.
    """
    file = temporary_folder(settings.home) / "static" / f"{number:04}-{hashlib.sha256(content).hexdigest()}{ending}"
    if not file.exists():
        write_whole(file, content)
    return file


def _matches(place: str) -> list[Path]:
    path = Path(place).expanduser()
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(path)))  # noqa: PTH207 - the pattern may be absolute
    return sorted(file for file in found if not path.is_dir() or _is_read(file))


def _fetched(place: str, settings: Settings) -> list[Path]:
    contents = {urlsplit(place).path: _by_http(place)} if place.startswith("http") else _from_store(place, settings.endpoint_of(place))
    return [
        _kept(number, content, ".parquet" if _is_parquet(PurePath(name)) else ".csv", settings)
        for number, (name, content) in enumerate(contents.items())
    ]


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
