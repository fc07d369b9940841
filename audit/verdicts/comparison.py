"""Compares a table with what it must hold. Absence is a value: a key is right if what is found is what is expected, also if that is nothing.

Pure, on rows in memory. docs/verify.md lists what counts as wrong and what does not.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, TypeVar

import orjson

from contract.windows import window_of

Row = Mapping[str, Any]
Kind = Literal["equal", "missing", "extra", "different", "expired", "not_checkable", "unknown_lateness", "ahead"]
"""The fields of verdict.RowCounts."""
WRONG: tuple[Kind, ...] = ("missing", "extra", "different")
MOST_SHOWN = 10


@dataclass(frozen=True)
class Unreadable:
    """A value that is no row. reason: why."""

    reason: str


Found = Row | Unreadable
K = TypeVar("K")
F = TypeVar("F")
E = TypeVar("E")


@dataclass(frozen=True)
class Difference:
    """A wrong row, or dead letter. where: its key, or its record of origin. expected, found: None if there is to be, or is, no such row."""

    kind: Kind
    where: str
    expected: object
    found: object


def kinds_by_key(
    found: Mapping[K, F], expected: Mapping[K, E], is_same: Callable[[F, E], bool], excuse: Callable[[K], Kind | None]
) -> dict[K, Kind]:
    """What is found at each key. excuse: what it is if it is not as expected, None if that is wrong."""

    def kind(key: K) -> Kind:
        found_row, expected_row = found.get(key), expected.get(key)
        if found_row is not None and expected_row is not None and is_same(found_row, expected_row):
            return "equal"
        return excuse(key) or ("missing" if found_row is None else "extra" if expected_row is None else "different")

    return {key: kind(key) for key in found.keys() | expected.keys()}


def differences(
    kinds: Mapping[K, Kind],
    found: Mapping[K, object],
    expected: Mapping[K, object],
    named: Callable[[K], str],
    order: Callable[[K], Any] = lambda key: key,
) -> list[Difference]:
    """The first wrong rows, in order of their keys, or of what `order` makes of them. named: a key as text."""
    wrong = sorted((key for key, kind in kinds.items() if kind in WRONG), key=order)[:MOST_SHOWN]
    return [Difference(kinds[key], named(key), expected.get(key), found.get(key)) for key in wrong]


@dataclass(frozen=True)
class Excuses:
    """Why rows may differ and be none the worse.

    unknown_lateness: keys of rows that depend on records of which it is not known whether they were late, or which of them counts.
    newest_lost_ms: an upper bound of the event times of the records that the source has lost; 0: it has lost none, None: unknown.
    growing: the columns that more records can only increase.
    session_gap: of session windows: those that had a lost record may have begun earlier, or gone on.
    kept_for: rows of windows that ended at least this long before the newest one may have been deleted.
    lost_before: rows all of whose times are before it may have been deleted with the oldest records of the topic.
    is_real_time: whether a row may be ahead of the last committed batch by any part of the next one.
    newest_end: the end of the newest window, if it is not among those compared.
    """

    unknown_lateness: AbstractSet[bytes] = frozenset()
    newest_lost_ms: int | None = 0
    growing: tuple[str, ...] = ()
    session_gap: timedelta | None = None
    kept_for: timedelta | None = None
    lost_before: datetime | None = None
    is_real_time: bool = False
    newest_end: datetime | None = None


@dataclass(frozen=True)
class Comparison:
    """The rows of a table, by key. found: what it holds. expected: what it must hold after the last committed batch.

    under_way: by key, the rows that the batch under way writes, in order, None for one that it deletes. Until
    it is committed, a key may hold any of them; one that it does not name, what it is expected to hold.
    unwritten: the keys whose expected rows were not written when the batch was committed, whatever they hold now.
    """

    found: Mapping[bytes, Found]
    expected: Mapping[bytes, Row]
    under_way: Mapping[bytes, Sequence[Row | None]] = field(default_factory=dict)
    excuses: Excuses = field(default=Excuses())
    unwritten: AbstractSet[bytes] = frozenset()

    @cached_property
    def kinds(self) -> dict[bytes, Kind]:
        return {key: self._kind(key) for key in self.found.keys() | self.expected.keys() | self.under_way.keys()}

    @property
    def counts(self) -> Counter[Kind]:
        return Counter(self.kinds.values())

    def differences(self) -> list[Difference]:
        """The first wrong rows, by key."""
        wrong = (key for key, kind in self.kinds.items() if kind in WRONG)
        expected = {key: next((row for row in self._accepted(key) if row is not None), None) for key in wrong}
        return differences(self.kinds, self.found, expected, lambda key: key.decode(errors="replace"))

    def _kind(self, key: bytes) -> Kind:
        found, accepted, excuses = self.found.get(key), self._accepted(key), self.excuses
        if any(is_same(found, row) for row in accepted):
            return "different" if key in self.unwritten else "equal"
        if excuses.is_real_time and key in self.under_way and self._is_between(found, accepted):
            return "different" if key in self.unwritten else "ahead"
        if found is None and (self._has_expired(key) or self._is_deleted(accepted)):
            return "expired"
        if self._is_unknown(key):
            return "unknown_lateness"
        if self._may_lack_lost_records(key, found, self.expected.get(key)):
            return "not_checkable"
        return "missing" if found is None else "extra" if all(row is None for row in accepted) else "different"

    def _accepted(self, key: bytes) -> Sequence[Row | None]:
        """What the key may hold, None for nothing."""
        return [self.expected.get(key), *self.under_way.get(key, ())]

    def _is_between(self, found: Found | None, accepted: Sequence[Row | None]) -> bool:
        """Whether the growing columns of a row are between those of the two accepted ones, and it has the later one's columns.

        With all of them as one of the two has them, it counts the same events, and must be that one.
        """
        most, growing = accepted[-1], self.excuses.growing
        if most is None or found is None or isinstance(found, Unreadable):
            return False
        if found.keys() - growing != most.keys() - growing or not found.keys() <= most.keys():
            return False
        least = accepted[0] or {}
        counts_the_same = growing and any(all(_total(found, name) == _total(row, name) for name in growing) for row in (least, most))
        return not counts_the_same and _is_at_least(found, least, growing) and _is_at_least(most, found, growing)

    def _is_unknown(self, key: bytes) -> bool:
        """Whether it is not known what the row counts. Of sessions, an event of which that is not known may begin, join or part others."""
        unknown, window = self.excuses.unknown_lateness, window_of(key)
        if key in unknown or self.excuses.session_gap is None or window is None:
            return key in unknown
        near = (
            other for other in unknown if (of_other := window_of(other)) and window.start <= of_other.end and of_other.start <= window.end
        )
        return any(_without_window(other) == _without_window(key) for other in near)

    def _may_lack_lost_records(self, key: bytes, found: Found | None, expected: Row | None) -> bool:
        """Whether lost records may have made the row what it is: they can only have added to it, and only to windows that began before them."""
        window, gap = window_of(key), self.excuses.session_gap
        if self.excuses.newest_lost_ms == 0 or isinstance(found, Unreadable):
            return False
        if window is None:
            return any(map(self._may_be_lost, _times(found, expected)))
        if not self._may_be_lost(window.start - (gap or timedelta())):
            return False
        if found is None:  # with its first events, a session has lost its key
            return gap is not None
        return expected is None or _is_at_least(found, expected, self.excuses.growing)

    def _may_be_lost(self, time: datetime) -> bool:
        newest_lost_ms = self.excuses.newest_lost_ms
        return newest_lost_ms is None or time <= datetime.fromtimestamp(newest_lost_ms / 1000, UTC)

    @cached_property
    def _newest_end(self) -> datetime | None:
        """The end of the newest window that should be there: one that was written by mistake excuses no other."""
        if self.excuses.newest_end is not None:
            return self.excuses.newest_end
        cut = (key for key, found in self.found.items() if self._may_lack_lost_records(key, found, self.expected.get(key)))
        keys = {*self.expected, *self.under_way, *cut}
        return max((window.end for key in keys if (window := window_of(key))), default=None)

    def _has_expired(self, key: bytes) -> bool:
        window, kept_for = window_of(key), self.excuses.kept_for
        return bool(window and kept_for and self._newest_end and window.end <= self._newest_end - kept_for)

    def _is_deleted(self, accepted: Sequence[Row | None]) -> bool:
        """Whether the rows that a key may hold are older than all records of the topic: a row is written after all times in it."""
        before, times = self.excuses.lost_before, list(_times(*accepted))
        return before is not None and bool(times) and max(times) < before


def _without_window(key: bytes) -> Row:
    return {name: value for name, value in orjson.loads(key).items() if name != "window"}


def _times(*rows: Row | None) -> Iterator[datetime]:
    """The times in rows without a window, as that of a camera's state."""
    for value in (value for row in rows if row is not None for value in row.values()):
        with contextlib.suppress(ValueError):
            if isinstance(value, str) and value.endswith("Z"):
                yield datetime.fromisoformat(value)


def is_same(found: Found | None, expected: Row | None) -> bool:
    """Whether a row is the expected one, or both are absent."""
    if found is None or expected is None or isinstance(found, Unreadable):
        return found is expected
    return found.keys() == expected.keys() and all(is_equal(found[name], expected[name]) for name in expected)


def is_equal(found: Any, expected: Any) -> bool:  # noqa: ANN401 - values of rows
    """Whether two values are equal, true not being 1, nor 1 being 1.0. A double is compared as one, and other numbers digit by digit."""
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(expected, int) and isinstance(found, Decimal):
        return False
    if isinstance(expected, float) and isinstance(found, Decimal | int):
        return float(found) == expected
    return bool(found == expected)


def _is_at_least(row: Row, least: Row, growing: Collection[str]) -> bool:
    totals = {name: _total(row, name) for name in growing}
    return all(isinstance(total, int | Decimal) and total is not True and total >= _total(least, name) for name, total in totals.items())


def _total(row: Row, name: str) -> Any:  # noqa: ANN401 - a value of a row
    """The value of a growing column. A row lacks it, or has null, until an event has added to it."""
    value = row.get(name)
    return 0 if value is None else value
