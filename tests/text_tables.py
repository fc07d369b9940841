"""Frames as tables of text, which a test, its message and a page of documentation all show in the same way.

    zip_code  window                                      count
    94107     {2026-01-01 10:00:00, 2026-01-01 11:00:00}  2

Two blanks or more part the columns. Times are UTC. The order of rows does not matter; their number does.
"""

import re
from collections import Counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812


def frame_of(spark: SparkSession, table: str, schema: str) -> DataFrame:
    """The rows of `table` as a frame with the columns of `schema`, a DDL string. The text `null` is a null."""
    names, *rows = cells_of(table)
    fields = T.StructType.fromDDL(schema)
    assert names == fields.names, f"the table has columns {names}, the schema {fields.names}"
    texts = [[None if cell == "null" else cell for cell in row] for row in rows]
    frame = spark.createDataFrame(texts, ", ".join(f"{name} string" for name in names))
    return frame.select(*(F.col(field.name).cast(field.dataType) for field in fields))


def expect_rows(frame: DataFrame, expected: str, **types: str) -> None:
    """Fails unless `frame` has the columns and rows of `expected`; the message shows both. types: of columns whose text does not tell the type."""
    assert isinstance(frame, DataFrame), f"came: {frame!r}\nexpected: a DataFrame; did you forget `return`?"
    names, *rows = cells_of(expected)
    assert frame.columns == names, f"came: columns {', '.join(frame.columns)}\nexpected: columns {', '.join(names)}, in this order"
    for name, kind in types.items():
        assert dict(frame.dtypes)[name] == kind, f"came: {name} is a {dict(frame.dtypes)[name]}\nexpected: {name} is a {kind}"
    came = sorted(
        [
            ["null" if value is None else value for value in row]
            for row in frame.select(*(F.col(f"`{name}`").cast("string") for name in names)).collect()
        ]
    )
    more, fewer = Counter(map(tuple, came)), Counter(map(tuple, rows))
    marks = _marks(came, more - fewer, "<- not expected"), _marks(sorted(rows), fewer - more, "<- missing in yours")
    assert more == fewer, f"came:\n{_text(names, came, marks[0])}\nexpected:\n{_text(names, sorted(rows), marks[1])}"


def cells_of(table: str) -> list[list[str]]:
    """The cells of each line, the header's first."""
    return [re.split(r" {2,}", line.strip()) for line in table.strip().splitlines()]


def _marks(rows: list[list[str]], wrong: Counter[tuple[str, ...]], mark: str) -> list[str]:
    marks = []
    for row in map(tuple, rows):
        marks.append(mark if wrong[row] > 0 else "")
        wrong[row] -= 1
    return marks


def _text(names: list[str], rows: list[list[str]], marks: list[str]) -> str:
    if not rows:
        return "  no rows"
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    lines = [[*row, mark] for row, mark in zip([names, *rows], ["", *marks], strict=True)]
    return "\n".join("  " + "  ".join(f"{cell:{width}}" for cell, width in zip(line, [*widths, 0], strict=True)).rstrip() for line in lines)
