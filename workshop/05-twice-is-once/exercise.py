"""Lab 5: twice is once. Read workshop/05-twice-is-once/README.md."""

from typing import Any


def put(table: dict[str, int], rows: list[dict[str, Any]]) -> None:
    """Put the rows of a batch into `table`, which survives a kill: the count of each hour, by the hour's start.

    rows: such as {"window": {"start": "2026-01-01T10:00:00Z", "end": "2026-01-01T11:00:00Z"}, "count": 2}; the whole count of an hour so far.
    They may come again after a kill, all or some.
    """
    msg = "store the count of each row under the start of its window"
    raise NotImplementedError(msg)


def add(table: dict[str, int], notes: dict[str, int], batch: int, rows: list[dict[str, Any]]) -> None:
    """Add the rows of a batch to the sums of `table`, each batch once.

    table, notes: two tables of one database. What you write to them becomes permanent together, when you return; a kill before that undoes both.
    notes is empty at first, and yours to use. batch: its number. Numbers go up, and a batch that runs again has its old number and its old rows.
    rows: such as {"hour": "2026-01-01T10:00:00Z", "people": 2}; what the batch adds.
    """
    msg = "add `people` of each row to the sum of its hour, unless this batch has been added before"
    raise NotImplementedError(msg)
