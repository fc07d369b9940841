"""Compares the table of a new version with the current one, which readers see."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from contract.settings import Settings
from contract.windows import utc, window_of
from pipeline.verification.outcome import Beside
from pipeline.verification.tables import Excuses, Row, Rows, Tables
from pipeline.verification.topic_table import ends_of, read_table

if TYPE_CHECKING:
    from pipeline.sinks.topics import CompactedTopic


def compared(current: "CompactedTopic", found: Rows, decode: Callable[[bytes], Row], settings: Settings) -> Beside:
    """Compares the rows of a new version with those in the topics of `current`.

    found: the new version's rows. Of rows with windows, only those count whose windows both versions have begun and passed: between the
    later of the first windows and the earlier of the newest ones.
    """
    there = read_table(settings, ends_of(current.topics, settings)).values
    until = None
    windows = [spans for rows in (there, found) if (spans := [window for key in rows if (window := window_of(key))])]
    if len(windows) == 2:  # noqa: PLR2004 - both versions
        first = max(min(window.start for window in spans) for spans in windows)
        last = min(max(window.start for window in spans) for spans in windows)
        there, found = (
            {key: row for key, row in rows.items() if (window := window_of(key)) and first <= window.start and window.end <= last}
            for rows in (there, found)
        )
        until = utc(last)
    comparison = Tables(there, found, decode=decode, decode_expected=decode).compare(Excuses())
    return Beside(current.place, until, comparison.counts, comparison.differences)
