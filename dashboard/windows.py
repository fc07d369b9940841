"""Rows of windows, which every domain page has, added up over time. Times are UTC."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import pandas as pd

from dashboard import charts
from infrastructure.rows import Row

MAX_COURSE = 200
"""The largest number of windows in a course of numbers, whatever times the rows have."""


def frame_of(rows: Iterable[Row], columns: Sequence[str]) -> pd.DataFrame:
    """The rows with these columns, start and end among them."""
    return pd.DataFrame(list(rows), columns=list(columns)).astype({"start": "datetime64[ms, UTC]", "end": "datetime64[ms, UTC]"})


def noun_of(start: datetime, end: datetime) -> str:
    """What pages call a window."""
    return "hour" if end - start == timedelta(hours=1) else "window"


def newest(rows: Sequence[Row], length: timedelta) -> list[Row]:
    """The rows whose windows end in the `length` before the newest end. Filtered before pandas: old rows may outnumber them by far."""
    if not rows:
        return []
    earliest = max(row["end"] for row in rows) - length
    return [row for row in rows if row["end"] > earliest]


def per_window(rows: Iterable[Row], count: str, length: timedelta) -> list[int]:
    """The sum of field `count` in each of the last windows of `length`, in order; 0 where there is none. Those that start between are left out."""
    sums: Counter[datetime] = Counter()
    for row in rows:
        sums[row["start"]] += row[count]
    first, last = min(sums), max(sums)
    windows = min((last - first) // length, MAX_COURSE)
    return [sums[last - length * ago] for ago in range(windows, -1, -1)]


def of_hour(frame: pd.DataFrame, names: Sequence[str], count: str, hour: pd.Timestamp | None) -> tuple[pd.DataFrame, int]:
    """The sum of column `count` by the columns `names` in the windows that start at `hour`, or in all if None; and its scale.

    The scale is the largest sum of any window, or of all: so the maps of several windows can be compared.
    """
    by_hour = frame.groupby([*names] if hour is None else [*names, "start"])[count].sum().reset_index()
    shown = by_hour if hour is None else by_hour[by_hour["start"] == hour].drop(columns="start")
    return shown, 0 if by_hour.empty else int(by_hour[count].max())


def over_time(frame: pd.DataFrame, name: str, count: str) -> tuple[pd.DataFrame, list[str]]:
    """The sum of column `count` per window of each of the largest values of column `name`, the rest as others.

    Returns (name, start, end, count), and the names by size.
    """
    largest = frame.groupby(name)[count].sum().nlargest(charts.MAX_SERIES).index
    named = frame.assign(name=frame[name].where(frame[name].isin(largest), charts.OTHERS), count=frame[count])
    series = named.groupby(["name", "start", "end"])["count"].sum().reset_index()
    return series, [*largest, *([charts.OTHERS] if charts.OTHERS in set(series["name"]) else [])]
