"""The rows of a result topic as columns."""

from infrastructure.output.row_formats import Rows, as_csv
from streamgauge.operations.report import with_columns

WINDOW = {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}


def test_the_window_comes_first_as_two_columns():
    rows = [{"zip_code": "94107", "window": WINDOW, "count": 3}, {"count": 4, "window": WINDOW, "zip_code": None}]
    found = with_columns(rows, is_flat=True)
    assert as_csv(found.columns, found.rows).splitlines() == [
        "window_start,window_end,zip_code,count",
        "2026-01-01T10:00:00Z,2026-01-01T11:00:00Z,94107,3",
        "2026-01-01T10:00:00Z,2026-01-01T11:00:00Z,,4",
    ]


def test_without_rows_there_are_no_columns():
    assert with_columns([], is_flat=True) == Rows([], [])
