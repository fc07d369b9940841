"""Reads TLC's Parquet files of any month, with any column types and any row order.

Rows are not ordered by time: trips of many hours, and a second run of rows at the end, would put nearly every row of a month behind a
watermark of minutes. Files are therefore sorted by drop-off, as the meters would have sent them. This needs all trips of a file in memory.

Column types drift: an id is int64 in one month and int32 in the next, a code is a double or an integer, a column without values has type
null, and a file that was saved again has text. The meaning of known columns is the same in all of them; the output has the schema `TRIP`.
A time is a timestamp of any unit, or text in ISO 8601 with date and time; numbers and dates are refused, because they may mean anything.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from infrastructure.errors import StreamgaugeError
from infrastructure.storage.paths import StoragePath
from infrastructure.text import printable, without_credentials
from producers.taxi.trips import DROPOFF, ESSENTIAL, TIMES, TRIP, TRIPS_PER_BATCH

_DATE_AND_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?Z?$"
_MOST_NAMES = 30
"""How many columns a message names; a file of TLC has 20 or 21."""


def file_at(text: str, endpoint_url: str = "") -> StoragePath:
    """The file at a path, or at a URI that fsspec reads, such as s3://, gs://, hdfs:// and https://.

    endpoint_url: see Settings.endpoint_of. Raises StreamgaugeError when fsspec does not know the URI's scheme, or the package
    that reads it is not installed.
    """
    if "://" not in text:
        return Path(text)
    from upath import UPath

    if text.startswith("hdfs:"):
        import infrastructure.storage.hdfs  # noqa: F401 - which registers it
    try:
        file = UPath(text, **({"endpoint_url": endpoint_url} if endpoint_url and text.startswith(("s3:", "s3a:", "hdfs:")) else {}))
        _ = file.fs  # imports the package
    except (ImportError, ValueError) as error:
        msg = f"--file {_shown(text)}: {_first_line(error)}; expected a path, or a URI that fsspec reads and whose package is installed"
        raise StreamgaugeError(msg) from error
    return file


def read_trips(path: StoragePath, notice: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
    """The trips of the file as batches of TRIP, ordered by drop-off. Ties keep the file's order; rows without drop-off come last.

    notice: gets one line if the file has unknown columns, which are dropped.
    Raises StreamgaugeError immediately for a file that cannot be read, is not Parquet, lacks an essential column, or has a known one twice;
    later, for a column with values of the wrong type.
    """
    with _errors_name_the_file(path):
        opened = path if isinstance(path, Path) else path.open("rb")
        # Nanoseconds, the default for INT96, reach from 1677 to 2262 only: other years would become years of that range.
        file = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        found = file.schema_arrow.names
    if missing := [name for name in ESSENTIAL if name not in found]:
        msg = f"{_shown(path)} lacks the columns {', '.join(missing)}; expected a file of TLC's green taxi trips, found the columns {_listed(found)}"
        raise StreamgaugeError(msg)
    if twice := [name for name in TRIP.names if found.count(name) > 1]:
        msg = f"{_shown(path)} has more than one column {', '.join(twice)}; expected one of each: drop or rename the others"
        raise StreamgaugeError(msg)
    if unknown := [name for name in found if name not in TRIP.names]:
        notice(f"{_shown(path.name)} has columns that are not known, and are left out: {_listed(unknown)}")
    return _in_order(file, path)


def _listed(names: list[str]) -> str:
    return printable(", ".join(names[:_MOST_NAMES])) + (f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else "")


def _shown(path: StoragePath | str) -> str:
    """The path without what may be a secret: a password before @, and a query such as that of a signed URL."""
    return without_credentials(str(path)).partition("?")[0]


def _in_order(file: pq.ParquetFile, path: StoragePath) -> Iterator[pa.RecordBatch]:
    with file, _errors_name_the_file(path):
        trips = pa.record_batch([_column(file, field, path) for field in TRIP], TRIP)
        trips.validate(full=True)  # Arrow reads text that is not UTF-8
        order = pc.sort_indices(trips[DROPOFF])  # stable, nulls at the end
        for first in range(0, len(order), TRIPS_PER_BATCH):
            yield trips.take(order.slice(first, TRIPS_PER_BATCH))


def _column(file: pq.ParquetFile, field: pa.Field, path: StoragePath) -> pa.Array:
    """The column with its type in TRIP. Null if the file does not have it."""
    if field.name not in file.schema_arrow.names:
        return pa.nulls(file.metadata.num_rows, field.type)
    return _converted(file.read([field.name]).column(0).combine_chunks(), field.name, path)


def _converted(column: pa.Array, name: str, path: StoragePath) -> pa.Array:
    """The values of `column` with their type in TRIP. Raises StreamgaugeError if they do not fit."""
    wanted = pa.timestamp("ms") if name in TIMES else TRIP.field(name).type
    try:
        if name in TIMES:
            return _milliseconds(column)
        if pa.types.is_floating(column.type):  # pandas and others write NaN for missing values
            column = pc.if_else(pc.is_finite(column), column, None)
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = f"{_shown(path)}: column {name}, of type {column.type}, cannot be read as {wanted} ({_first_line(error)}); correct its values"
        raise StreamgaugeError(msg) from error


def _milliseconds(column: pa.Array) -> pa.Array:
    """Wall-clock times in any unit, as ms since 1970. See `producers.taxi.trips` on time zones."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not pa.types.is_timestamp(column.type):
        column = _from_text(column)
    if column.type.tz is not None:
        column = pc.local_timestamp(column)
    return column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())


def _from_text(column: pa.Array) -> pa.Array:
    """Times in ISO 8601. A Z changes nothing: the clock is taken as UTC anyway."""
    kinds = pa.types
    if not (
        kinds.is_string(column.type)
        or kinds.is_large_string(column.type)
        or kinds.is_string_view(column.type)
        or kinds.is_null(column.type)
    ):
        msg = "neither timestamps nor text"
        raise pa.ArrowInvalid(msg)
    text = column.cast(pa.string())
    wrong = text.filter(pc.invert(pc.match_substring_regex(text, _DATE_AND_TIME)))
    if len(wrong):
        msg = f"expected text such as 2024-03-01 08:00:00, found {wrong[0].as_py()!r:.40}"
        raise pa.ArrowInvalid(msg)
    return pc.utf8_rtrim(text, "Z").cast(pa.timestamp("us"))


@contextmanager
def _errors_name_the_file(path: StoragePath) -> Iterator[None]:
    """Turns the errors of reading a Parquet file into one that names the file."""
    try:
        yield
    except StreamgaugeError:
        raise
    except Exception as error:  # object stores have no common error class
        msg = f"{_shown(path)} cannot be read: {type(error).__name__}: {_shown(_first_line(error))}; expected a Parquet file of TLC's green taxi trips"
        raise StreamgaugeError(msg) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
