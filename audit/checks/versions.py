"""A new version of a query, which writes a topic of its own, beside the current one."""

from collections.abc import Mapping
from dataclasses import replace

from audit.audited import Table
from audit.reading.result_topic import ends_of, rows_below
from audit.verdicts.comparison import Comparison, Found
from audit.verdicts.verdict import Beside, RowCounts
from contract.checkpoints.names import checkpoints
from contract.windows import utc, window_of
from infrastructure.settings import Settings


def versions_of(table: Table, settings: Settings) -> tuple[Table, ...]:
    """The versions of a table that have run here beside it: of query `<name>.v2`, in topic `<name>.v2`."""
    endings = [f".v{place.name.version}" for place in checkpoints(settings) if place.name.query == f"{table.query}.v{place.name.version}"]
    return tuple(
        replace(
            table,
            query=f"{table.query}{ending}",
            topic=replace(table.topic, plain_name=f"{table.topic.plain_name}{ending}"),
            current=table.topic,
        )
        for ending in dict.fromkeys(endings)
    )


def beside(version: Table, rows: Mapping[bytes, Found], settings: Settings) -> Beside:
    """Compares the rows of a version with the current ones.

    Of rows with windows, only those count whose windows both have begun and passed: between the later of the first windows and the earlier of
    the newest ones.
    """
    of_current = replace(version, topic=version.current or version.topic)
    current = rows_below(of_current, ends_of(of_current.topic, settings), settings).rows
    new, until = rows, None
    windows = [spans for rows_by_key in (current, new) if (spans := [window for key in rows_by_key if (window := window_of(key))])]
    if len(windows) == 2:  # noqa: PLR2004 - both versions
        first = max(min(window.start for window in spans) for spans in windows)
        last = min(max(window.start for window in spans) for spans in windows)
        current, new = (
            {key: row for key, row in rows_by_key.items() if (window := window_of(key)) and first <= window.start and window.end <= last}
            for rows_by_key in (current, new)
        )
        until = utc(last)
    comparison = Comparison(new, {key: row for key, row in current.items() if isinstance(row, dict)})
    return Beside(of_current.sink, until, RowCounts.of(comparison.counts), comparison.differences())
