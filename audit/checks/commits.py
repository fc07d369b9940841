"""Whether the topic has had each row as it was when its batch was committed.

In real-time mode, a row that changes all the time is ahead of the last committed batch at each check, and any value between this batch and the end
of the source is accepted. But a batch is committed after all its rows are written, and before any of the next batch. So the row that a batch has
given a key must be among the values that the topic has got for that key since the batch before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audit.reading.result_topic import read_value
from audit.verdicts.comparison import Found, Row, is_same

Values = Mapping[bytes, Sequence[bytes | None]]
"""The values that each key has got, in order."""
MOST_BYTES = 16_000_000
"""The limit for values that are kept: a batch that does not end must not fill the memory."""


class AtCommits:
    """The rows that the topic of one table has had. Finds nothing until it has seen two batches, from the first one or from a gap on.

    What it found before a gap stays until a batch shows otherwise.
    """

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        self._decode = decode
        self._lacking: set[bytes] = set()
        self._forget()

    def _forget(self) -> None:
        self._number: int | None = None
        self._had: dict[bytes, Row] = {}
        self._checks: list[Values] = []
        self._is_whole = False

    def lacking(
        self, number: int, expected: Mapping[bytes, Row], found: Mapping[bytes, Found | None], values: Values | None
    ) -> frozenset[bytes]:
        """The keys that have not had their rows of the committed batch `number`, and do not hold them.

        Call it at each check. expected: these rows. found: the rows that the keys hold. values: those that they have got since the last check; None
        if these, or the expected rows, are not known, which is a gap.
        """
        if values is None or sum(map(_size, (*self._checks, values))) > MOST_BYTES:
            self._forget()
        else:
            self._take(number, expected, values)
        return frozenset(key for key in self._lacking if not is_same(found.get(key), expected.get(key)))

    def _take(self, number: int, expected: Mapping[bytes, Row], values: Values) -> None:
        self._checks.append(values)
        if number != self._number:
            changed = {key: row for key, row in expected.items() if not is_same(self._had.get(key), row)}
            doubtful = changed.keys() if self._is_whole else changed.keys() & self._lacking
            self._lacking = {key for key in doubtful if not self._has_had(key, expected[key])}
            self._had = {key: row for key, row in expected.items() if key not in self._lacking}
            # Between the commit that this check saw and its end of the topic, the next batch may have been committed as well.
            self._number, self._checks = number, self._checks[-2:]
            self._is_whole = len(self._checks) == 2  # noqa: PLR2004

    def _has_had(self, key: bytes, row: Row) -> bool:
        values = (value for of_check in reversed(self._checks) for value in reversed(of_check.get(key, ())))
        return any(value is not None and is_same(read_value(self._decode, value), row) for value in values)


def _size(values: Values) -> int:
    return sum(len(value or b"") for of_key in values.values() for value in of_key)
