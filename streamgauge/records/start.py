"""Where to begin reading a topic: the values of the option --from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

from infrastructure.errors import StreamgaugeError

Offsets = Mapping[int, tuple[int, int]]
"""The first offset and the end offset (of the next record), by partition."""


@dataclass(frozen=True)
class Start:
    """Where to begin: at an offset, at the last records of each partition, or at the first record from a time on, in ms since 1970."""

    offset: int | None = None
    last: int | None = None
    time_ms: int | None = None

    @classmethod
    def of(cls, text: str, option: str = "--from") -> "Start":
        """The start that `text` of an option means. Raises StreamgaugeError if it means none."""
        words = {"beginning": cls(offset=0), "end": cls(last=0)}
        if text in words:
            return words[text]
        try:
            if text.removeprefix("-").isdecimal():  # a number may be too long for Python
                return cls(last=int(text[1:])) if text.startswith("-") else cls(offset=int(text))
            moment = datetime.fromisoformat(text)
        except ValueError as error:
            msg = f"{option} is {text!r}; expected beginning, end, an offset such as 42, the last records such as -10, or a time such as 2026-01-31T10:00:00Z"
            raise StreamgaugeError(msg) from error
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return cls(time_ms=max(0, ceil(moment.timestamp() * 1000)))

    def offsets(self, ranges: Offsets, at_time: Callable[[int, Offsets], Mapping[int, int]]) -> dict[int, int]:
        """The offset to begin at, by partition, between its first and its end. at_time: the offsets of a time, in ms since 1970."""
        if self.time_ms is not None:
            return dict(at_time(self.time_ms, ranges))
        wanted = {partition: end - self.last if self.last is not None else self.offset or 0 for partition, (_, end) in ranges.items()}
        return {partition: min(max(first, wanted[partition]), end) for partition, (first, end) in ranges.items()}
