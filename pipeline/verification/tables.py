"""Compares a compacted topic with its expected rows. Pure, on values in memory."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, cast

from contract.windows import window_of
from pipeline.verification.outcome import MAX_DIFFERENCES, WRONG, Difference, Kind, RowCounts

Row = Mapping[str, Any]
Rows = Mapping[bytes, bytes]
"""Values by key, both as bytes."""


def json_row(value: bytes) -> Row:
    """Parses a JSON row. Numbers keep their exact decimal value. Raises ValueError when it is not a JSON object."""
    row = json.loads(value, parse_float=Decimal)
    if not isinstance(row, dict):
        msg = f"expected a JSON object, found {type(row).__name__}"
        raise ValueError(msg)  # noqa: TRY004 - the value is wrong, as any other text that is no JSON object
    return row


@dataclass
class Tables:
    """The two sides of a comparison.

    expected: the rows of the committed prefix, as JSON. found: the topic's rows, read by `decode`. expected_ahead: returns the rows of the
    planned prefix while a batch is running; called only if something differs.

    The others are accepted reasons for a row to differ.
    unknown_lateness: keys of rows that depend on records whose lateness is unknown. is_cut: whether the source has lost records.
    newest_cut_ms: an upper bound of their event times; None if unknown. growing: columns that additional records can only increase.
    kept_for: windows that ended at least this long before the newest one may have been deleted.
    session_gap: of session windows; those that had a lost record may have begun earlier, or gone on.
    is_real_time: whether a row may be ahead of the last committed batch by any part of the next one.
    """

    expected: Rows
    found: Rows
    decode: Callable[[bytes], Row] = json_row
    decode_expected: Callable[[bytes], Row] = json_row
    expected_ahead: Callable[[], Rows] | None = None
    unknown_lateness: AbstractSet[bytes] = frozenset()
    is_cut: bool = False
    newest_cut_ms: int | None = None
    growing: tuple[str, ...] = ()
    kept_for: timedelta | None = None
    session_gap: timedelta | None = None
    is_real_time: bool = False

    def compare(self) -> tuple[RowCounts, list[Difference]]:
        """Compares every key. Returns the counts, and the first differences."""
        kinds = {key: self._kind(key) for key in sorted(self.expected.keys() | self.found.keys())}
        wrong = [key for key, kind in kinds.items() if kind in WRONG]
        differences = [self._difference(kinds[key], key) for key in wrong[:MAX_DIFFERENCES]]
        return RowCounts(**Counter(kinds.values())), differences

    @cached_property
    def _ahead(self) -> Rows:
        """The rows of the planned prefix; empty if no batch is running."""
        return {} if self.expected_ahead is None else self.expected_ahead()

    def _kind(self, key: bytes) -> str:
        """The field of RowCounts that counts the row."""
        if key in self.found and (self._is_equal(key, self.expected) or self._is_equal(key, self._ahead)):
            return "equal"
        if self.is_real_time and self._is_between(key):
            return "ahead"
        if key not in self.found and self._has_expired(key):
            return "expired"
        if key in self.unknown_lateness:
            return "unknown_lateness"
        if self._may_be_cut(key) or self._is_of_cut_history(key):
            return "not_checkable"
        return "missing" if key not in self.found else "different" if key in self.expected else "extra"

    def _is_equal(self, key: bytes, expected: Rows) -> bool:
        return key in expected and (self.found[key] == expected[key] or self._found_row(key) == self._expected_row(key, expected))

    def _is_between(self, key: bytes) -> bool:
        """Whether the row's growing columns are between those of the two expected rows, and it has the later one's columns."""
        row, most, growing = self._found_row(key), self._expected_row(key, self._ahead), self.growing
        if most is None or not isinstance(row, dict):
            return False
        least = self._expected_row(key, self.expected) or dict.fromkeys(growing, 0)
        return row.keys() == most.keys() and _is_at_least(row, least, growing) and _is_at_least(most, row, growing)

    def _expected_row(self, key: bytes, expected: Rows) -> Row | None:
        return self.decode_expected(expected[key]) if key in expected else None

    def _found_row(self, key: bytes) -> Any:  # noqa: ANN401 - a row, or words on why there is none
        if key not in self.found:
            return None
        try:
            return self.decode(self.found[key])
        except Exception as error:  # Avro decoders raise many exception types; each means a wrong row
            return f"not readable: {type(error).__name__}: {error}"

    def _difference(self, kind: str, key: bytes) -> Difference:
        expected = self._expected_row(key, self.expected if key in self.expected else self._ahead)
        return Difference(cast("Kind", kind), key.decode(errors="replace"), expected, self._found_row(key))

    def _may_be_cut(self, key: bytes) -> bool:
        if not self.is_cut:
            return False
        window, row, gap, cut_ms = window_of(key), self._found_row(key), self.session_gap, self.newest_cut_ms
        if window is None or not isinstance(row, dict | None):
            return False
        if cut_ms is not None and window.start > datetime.fromtimestamp(cut_ms / 1000, UTC) + (gap or timedelta()):
            return False
        if row is None:  # with its first events, a session has lost its key
            return gap is not None
        least = self._expected_row(key, self.expected)
        return least is None or _is_at_least(row, least, self.growing)

    def _is_of_cut_history(self, key: bytes) -> bool:
        """Whether the row has no window, as that of a camera's state, and one of its times is among those of the lost records."""
        if not self.is_cut or window_of(key) is not None:
            return False
        rows, cut_ms = (self._found_row(key), self._expected_row(key, self.expected)), self.newest_cut_ms
        times = [time for row in rows if isinstance(row, dict) for time in map(_time, row.values()) if time is not None]
        return cut_ms is None or any(time.timestamp() * 1000 <= cut_ms for time in times)

    @cached_property
    def _newest_end(self) -> datetime | None:
        # Not every found row may determine the newest window: a row written by mistake must not excuse missing ones.
        keys = {*self.expected, *self._ahead, *(found for found in self.found if self._may_be_cut(found))}
        return max((of.end for one in keys if (of := window_of(one))), default=None)

    def _has_expired(self, key: bytes) -> bool:
        window, kept_for = window_of(key), self.kept_for
        return bool(window and kept_for and self._newest_end and window.end <= self._newest_end - kept_for)


def own_rows(found: Rows, expected: Rows, key: Collection[str]) -> Rows:
    """The rows of `found` with keys of the columns `key`, from the first window of `expected` on: a recount gives none before it."""
    first = min((window.start for one in expected if (window := window_of(one))), default=datetime.max.replace(tzinfo=UTC))

    def is_own(one: bytes) -> bool:
        window = window_of(one)
        return window is not None and window.start >= first and set(json.loads(one)) == set(key)

    return {one: value for one, value in found.items() if is_own(one)}


def _is_at_least(row: Row, least: Row, growing: Collection[str]) -> bool:
    return all(isinstance(row.get(column), int) and row[column] >= least[column] for column in growing)


def _time(value: Any) -> datetime | None:  # noqa: ANN401 - whatever a row holds
    """A value that is a time as rows have it."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) and value.endswith("Z") else None
    except ValueError:
        return None
