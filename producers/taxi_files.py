"""Reads TLC's Parquet files, whatever the month: any width of a column, any order of rows, in memory that does not grow with the file.

A file is not in the order in which things happened: trips of many hours, and a second run of rows at the end, put nearly every row of a
month behind a watermark of minutes. It is therefore read in order of drop-off, as the meters would have sent it. One pass over the drop-off
column alone ranks the rows (8 bytes each); then each further pass takes the next ROWS_A_PASS rows by rank, and sorts those. Row groups that
hold none of them are not read again.

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

from producers.taxi_trips import DROPOFF, ESSENTIAL, TIMES, TRIP, TRIPS_A_BATCH
from streamgauge.errors import StreamgaugeError

ROWS_A_PASS = 131_072
_ROWS_READ_AT_ONCE = 16_384
_BYTES_READ_AT_ONCE = 1024 * 1024


def read_trips(path: Path, notice: Callable[[str], None], *, rows_a_pass: int = ROWS_A_PASS) -> Iterator[pa.RecordBatch]:
    """The trips of the file as batches of TRIP, in order of drop-off; rows of the same moment in the order of the file, rows without one last.

    notice: is given one line if the file has columns that are not known and are left out.
    Raises StreamgaugeError, at once, for a file that cannot be read, is no Parquet, or lacks an essential column; and, on the way, for a
    column that does not hold what its name says.
    """
    with _told_by_name(path):
        file = pq.ParquetFile(path, buffer_size=_BYTES_READ_AT_ONCE)
        found = file.schema_arrow.names
    if missing := [name for name in ESSENTIAL if name not in found]:
        msg = f"{path} has no column {', '.join(missing)}; expected a file of TLC's green taxi trips, found the columns {', '.join(found)}"
        raise StreamgaugeError(msg)
    if unknown := [name for name in found if name not in TRIP.names]:
        notice(f"{path.name} has columns that are not known, and are left out: {', '.join(unknown)}")
    return _in_order(file, path, rows_a_pass)


def _in_order(file: pq.ParquetFile, path: Path, rows_a_pass: int) -> Iterator[pa.RecordBatch]:
    with file, _told_by_name(path):
        ranks = _ranks(file, path)
        for first in range(0, len(ranks), rows_a_pass):
            yield from _ranked_between(file, path, ranks, first, first + rows_a_pass).to_batches(TRIPS_A_BATCH)


def _ranks(file: pq.ParquetFile, path: Path) -> pa.Int64Array:
    """For each row of the file its place in the order of drop-off."""
    batches = file.iter_batches(_ROWS_READ_AT_ONCE, columns=[DROPOFF])
    dropoffs = pa.chunked_array([_converted(batch.column(0), DROPOFF, path) for batch in batches], pa.int64())
    order = pc.sort_indices(dropoffs)  # stable, nulls at the end
    return pc.inverse_permutation(order.cast(pa.int64()))


def _ranked_between(file: pq.ParquetFile, path: Path, ranks: pa.Int64Array, first: int, end: int) -> pa.Table:
    """The rows whose rank is `first` or more and below `end`, by rank."""
    chosen = pc.and_(pc.greater_equal(ranks, first), pc.less(ranks, end))
    columns = [name for name in file.schema_arrow.names if name in TRIP.names]
    pieces, position = [], 0
    for group in range(file.num_row_groups):
        group_end = position + file.metadata.row_group(group).num_rows
        if pc.any(chosen.slice(position, group_end - position)).as_py():
            for batch in file.iter_batches(_ROWS_READ_AT_ONCE, row_groups=[group], columns=columns):
                pieces.append(_as_trips(batch.filter(chosen.slice(position, len(batch))), path))
                position += len(batch)
        position = group_end
    return pa.Table.from_batches(pieces, TRIP).take(pc.sort_indices(ranks.filter(chosen)))


def _as_trips(batch: pa.RecordBatch, path: Path) -> pa.RecordBatch:
    """The rows of `batch` with the columns of TRIP; what it lacks is null."""
    found = set(batch.schema.names)
    columns = [
        _converted(batch.column(field.name), field.name, path) if field.name in found else pa.nulls(len(batch), field.type)
        for field in TRIP
    ]
    return pa.record_batch(columns, TRIP)


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
