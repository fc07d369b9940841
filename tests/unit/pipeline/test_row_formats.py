"""Rows as table, CSV and JSON."""

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from messages import refused
from rich.console import Console

from infrastructure.output.row_formats import as_csv, as_json, as_table

COLUMNS = ["name", "fare", "at", "window", "raw", "nothing", "is_it"]
AT = datetime(2026, 1, 1, 14, 0, 0, 500000, tzinfo=timezone(timedelta(hours=2)))
ROW = [
    'a, "b"',
    Decimal("12345678901234567.10"),
    AT,
    {"start": datetime(2026, 1, 1, tzinfo=UTC), "of": [Decimal("1.50")]},
    b"\x00\xff",
    None,
    True,
]


def test_json_has_the_digits_and_times_in_utc():
    text = as_json(COLUMNS, [ROW])
    assert '"fare":12345678901234567.10' in text
    (row,) = json.loads(text)
    assert row["at"] == "2026-01-01T14:00:00.500000+02:00" or row["at"] == "2026-01-01T12:00:00.500000Z"
    assert row["window"] == {"start": "2026-01-01T00:00:00Z", "of": [1.5]}
    assert (row["raw"], row["nothing"], row["is_it"]) == ("AP8=", None, True)


def test_csv_reads_back():
    header, cells = csv.reader(io.StringIO(as_csv(COLUMNS, [ROW])))
    assert header == COLUMNS
    assert cells[:3] == ['a, "b"', "12345678901234567.10", "2026-01-01T12:00:00.500000Z"]
    assert json.loads(cells[3]) == {"start": "2026-01-01T00:00:00Z", "of": [1.5]}
    assert cells[4:] == ["AP8=", "", "true"]


def test_no_rows_keep_their_columns():
    assert as_csv(["a", "b"], []) == "a,b"
    assert as_json(["a", "b"], []) == "[]"
    assert [column.header.plain for column in as_table(["a", "b"], []).columns] == ["a", "b"]


def test_two_columns_of_one_name_are_no_json_and_are_csv():
    with refused(" a"):
        as_json(["a", "a"], [[1, 2]])
    assert as_csv(["a", "a"], [[1, 2]]) == "a,a\n1,2"


def test_a_terminal_obeys_nothing_that_is_in_a_row():
    console = Console(width=80, file=io.StringIO())
    console.print(as_table(["day", "text"], [[date(2026, 1, 1), "\x1b[2J[red]x[/red]"]]))
    shown = console.file.getvalue()
    assert "\x1b" not in shown
    assert "[red]x[/red]" in shown
    assert "2026-01-01" in shown


def shown(columns, row, width):
    """What a terminal of `width` shows of one row: its lines, without the frame, and the values put together again."""
    console = Console(width=width, file=io.StringIO(), soft_wrap=True)
    console.print(as_table(columns, [row], width))
    lines = console.file.getvalue().splitlines()
    cells = zip(*(line.strip("│").split("│") for line in lines if "│" in line), strict=True)
    return lines, ["".join(part.strip() for part in cell) for cell in cells]


def test_a_narrow_terminal_folds_values_and_cuts_none():
    row = ["2026-01-01T14:00:00Z", "2026-01-01T15:00:00Z", "wikidatawiki", 1200345]
    lines, values = shown(["window_start", "window_end", "wiki", "bytes_added"], row, width=60)
    assert values == [str(value) for value in row]
    assert max(map(len, lines)) == 60


def test_columns_for_which_a_terminal_has_no_room_are_omitted_from_the_end():
    _, values = shown(list("abcdefgh"), [f"value-number-{number}" for number in range(8)], width=40)
    assert values == ["value-number-0", "value-number-1", "value-number-2"]


def test_a_pipe_gets_each_row_in_one_line():
    text = "a long text " * 30
    console = Console(width=80, file=io.StringIO(), soft_wrap=True)
    console.print(as_table(["day", "text"], [[date(2026, 1, 1), text]]))
    assert f"│ 2026-01-01 │ {text} │" in console.file.getvalue()
