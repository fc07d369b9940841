"""Reads TLC's Parquet files, whatever the month: any width of a column, any order of rows.

A file is not in the order in which things happened: trips of many hours, and a second run of rows at the end, put nearly every row of a
month behind a watermark of minutes. It is therefore sorted by drop-off, as the meters would have sent it, which takes all of its trips in memory.

Columns drift: an id is int64 in one month and int32 in the next, a code is a double or an integer, a column without values has the type
null, a file that was saved again has text. What a known column means is the same in all of them, and `TRIP` is what comes out.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contract.errors import StreamgaugeError
from producers.taxi.trips import DROPOFF, ESSENTIAL, TIMES, TRIP, TRIPS_A_BATCH


def read_trips(path: Path, notice: Callable[[str], None]) -> Iterator[pa.RecordBatch]:
    """The trips of the file as batches of TRIP, in order of drop-off; rows of the same moment in the order of the file, rows without one last.

    notice: is given one line if the file has columns that are not known and are left out.
    Raises StreamgaugeError, at once, for a file that cannot be read, is no Parquet, or lacks an essential column; and, on the way, for a
    column that does not hold what its name says.
    """
    with _told_by_name(path):
        file = pq.ParquetFile(path)
        found = file.schema_arrow.names
    if missing := [name for name in ESSENTIAL if name not in found]:
        msg = f"{path} has no column {', '.join(missing)}; expected a file of TLC's green taxi trips, found the columns {', '.join(found)}"
        raise StreamgaugeError(msg)
    if unknown := [name for name in found if name not in TRIP.names]:
        notice(f"{path.name} has columns that are not known, and are left out: {', '.join(unknown)}")
    return _in_order(file, path)


def _in_order(file: pq.ParquetFile, path: Path) -> Iterator[pa.RecordBatch]:
    with file, _told_by_name(path):
        trips = pa.record_batch([_column(file, field, path) for field in TRIP], TRIP)
        order = pc.sort_indices(trips[DROPOFF])  # stable, nulls at the end
        for first in range(0, len(order), TRIPS_A_BATCH):
            yield trips.take(order.slice(first, TRIPS_A_BATCH))


def _column(file: pq.ParquetFile, field: pa.Field, path: Path) -> pa.Array:
    """A column as TRIP has it; null when the file lacks it."""
    if field.name not in file.schema_arrow.names:
        return pa.nulls(file.metadata.num_rows, field.type)
    return _converted(file.read([field.name]).column(0).combine_chunks(), field.name, path)


def _converted(column: pa.Array, name: str, path: Path) -> pa.Array:
    """The values of `column` as TRIP has them: the same values, or a StreamgaugeError."""
    wanted, found = TRIP.field(name).type, column.type
    try:
        if pa.types.is_dictionary(found):
            column = column.dictionary_decode()
        if pa.types.is_null(found):
            return pa.nulls(len(column), wanted)
        if name in TIMES:
            return _milliseconds(column)
        return column.cast(wanted) if pa.types.is_string(wanted) else _numbers(column, wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = (
            f"{path}: column {name}, of type {found}, holds something else than {_meaning(name)} ({_first_line(error)}); mend these values"
        )
        raise StreamgaugeError(msg) from error


def _meaning(name: str) -> str:
    return "times" if name in TIMES else {pa.int64(): "whole numbers", pa.float64(): "numbers"}.get(TRIP.field(name).type, "text")


def _milliseconds(column: pa.Array) -> pa.Array:
    """Wall-clock times, in any unit, as ms since 1970; see `taxi_trips` on time zones."""
    if _is_text(column.type):
        column = _without_blanks(column).cast(pa.timestamp("us"))
    if not pa.types.is_timestamp(column.type):
        msg = f"{column.type} is no time"
        raise pa.ArrowInvalid(msg)
    if column.type.tz is not None:
        column = pc.local_timestamp(column)
    return column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())


def _numbers(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Numbers of any type as `wanted`. NaN and infinity, which pandas and others write for what is missing, are null: JSON has neither."""
    if _is_text(column.type):
        column = _without_blanks(column)
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_finite(column), column, None)
    return column.cast(wanted)


def _is_text(found: pa.DataType) -> bool:
    return pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_string_view(found)


def _without_blanks(column: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    return pc.if_else(pc.equal(trimmed, ""), None, trimmed)


@contextmanager
def _told_by_name(path: Path) -> Iterator[None]:
    """Turns the errors of reading a Parquet file into one that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = f"cannot be read ({os.strerror(number)})" if number else f"is no Parquet file, or a damaged one ({_first_line(error)})"
        msg = f"{path} {reason}; expected a Parquet file of TLC's green taxi trips"
        raise StreamgaugeError(msg) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
