"""Formats rows as a terminal table, CSV or JSON."""

import base64
import csv
import io
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any

import orjson
from rich.table import Table
from rich.text import Text

from infrastructure.errors import StreamgaugeError
from infrastructure.output.terminal import err, out
from infrastructure.text import printable

_NARROWEST = 8
"""The width of a column to which a narrow terminal folds its values."""


@dataclass(frozen=True)
class Rows:
    """Rows to show: values in the order of `columns`. is_cut: a limit removed rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_cut: bool = False


def show(table: Rows, output_format: str, limit: int = 0) -> None:
    """Prints rows as a table, CSV or JSON. limit: the number of rows to which they may have been cut."""
    if output_format == "table":
        columns = table.columns or ["no rows"]
        shown = as_table(columns, table.rows, out.width if out.is_terminal else None)
        out.print(shown)
        if left_out := columns[len(shown.columns) :]:
            err.print(f"columns that do not fit: {', '.join(map(printable, left_out))}; --format csv has them")
    else:
        sys.stdout.write((as_json if output_format == "json" else as_csv)(table.columns, table.rows) + "\n")
    if table.is_cut:
        err.print(f"only the first {limit} rows; --limit sets another number")


def as_json(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A JSON array with one object per row.

    Times are ISO 8601, UTC with Z; decimals are numbers with all digits; bytes are Base64; numbers that JSON does not have are text: NaN, Infinity.
    Raises StreamgaugeError for duplicate column names.
    """
    twice = sorted({name for name in columns if list(columns).count(name) > 1})
    if twice:
        msg = f"two columns are named {', '.join(twice)}, which JSON cannot represent; rename one with `as`, or use --format csv"
        raise StreamgaugeError(msg)
    return json_text([dict(zip(columns, row, strict=True)) for row in rows])


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """CSV with a header. Structs, lists and maps are JSON; null is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().rstrip("\n")


def as_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None = None) -> Table:
    """A table; times are UTC.

    width: that of the terminal. Longer values are folded, and the last columns are omitted if not even that makes room for them. None: no limit.
    """
    # Text, because rich would interpret markup in a str.
    cells = [[Text(printable(text)) for text in (name, *(_cell(row[number]) for row in rows))] for number, name in enumerate(columns)]
    widths = [max(cell.cell_len for cell in column) for column in cells]
    table = Table(width=None if width else sum(widths) + 3 * len(widths) + 1)
    ends = accumulate(min(each, _NARROWEST) + 3 for each in widths)
    fitting = sum(end < width for end in ends) if width else len(columns)
    for number, column in enumerate(cells[: max(fitting, 1)]):
        is_number = any(isinstance(row[number], int | float | Decimal) and not isinstance(row[number], bool) for row in rows)
        table.add_column(column[0], justify="right" if is_number else "left", overflow="fold")
    for line in zip(*(column[1:] for column in cells[: len(table.columns)]), strict=True):
        table.add_row(*line)
    return table


def _cell(value: Any) -> str:  # noqa: ANN401 - whatever a column holds
    if value is None:
        return ""
    plain = _plain(value)
    if isinstance(plain, str):
        return plain
    return str(plain) if isinstance(plain, int | float) and not isinstance(plain, bool) else json_text(plain)


def json_text(value: Any) -> str:  # noqa: ANN401 - rows, or what a column holds
    """A value as JSON, with the types of `as_json`."""
    return orjson.dumps(_plain(value)).decode()


def _plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - whatever a column holds, a line for each type
    """The value in types that orjson writes as they are."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return orjson.Fragment(f"{value:f}")
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return (value.astimezone(UTC).isoformat().replace("+00:00", "Z")) if value.tzinfo else value.isoformat()
        case date() | timedelta():
            return str(value)
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
    return value
