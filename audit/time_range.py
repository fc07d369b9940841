"""A range of event times: the windows that lie within it are recounted, from those records alone that can matter."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from audit.audited import Table
from contract.windows import window_of
from infrastructure.errors import StreamgaugeError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TimeRange:
    """From `start` up to `end`, UTC. None: without that bound."""

    start: datetime | None = None
    end: datetime | None = None

    @classmethod
    def of(cls, start: str | None, end: str | None) -> "TimeRange | None":
        """The range of two options, None without both. Raises StreamgaugeError if one is no time, or the range is empty."""
        if start is None and end is None:
            return None
        found = cls(_time_of("--from", start), _time_of("--to", end))
        if found.start and found.end and found.start >= found.end:
            msg = f"--from {start} is not before --to {end}; expected an earlier time"
            raise StreamgaugeError(msg)
        return found

    def has(self, key: bytes) -> bool:
        """Whether the window of a row's key lies within the range."""
        window = window_of(key)
        return window is not None and (self.start is None or self.start <= window.start) and (self.end is None or window.end <= self.end)

    def needed_by(self, table: Table) -> "TimeRange":
        """The event times that decide about the rows within the range.

        A session may go on from one before it, within its gap. Of one whose key says only when it started, the end is unknown.
        """
        gap = timedelta(microseconds=table.session_gap_us)
        return TimeRange(self.start and self.start - gap, self.end if "window" in table.key else None)

    def condition(self, table: Table) -> str:
        """SQL: whether a fact of `table` is of these times. A session goes on at its very end, so that this counts."""
        bounds = [f"{table.event_time} >= {_timestamp(self.start)}"] if self.start else []
        bounds += [f"{table.event_time} {'<=' if table.session_gap_us else '<'} {_timestamp(self.end)}"] if self.end else []
        return " AND ".join(bounds) or "true"


def _timestamp(time: datetime) -> str:
    return f"TIMESTAMP '{time:%Y-%m-%d %H:%M:%S.%f}'"


def ms_of(time: datetime | None) -> int:
    """Milliseconds since 1970; 0 of None."""
    return 0 if time is None else (time - _EPOCH) // timedelta(milliseconds=1)


def _time_of(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    found = None
    with suppress(ValueError, OverflowError):  # the second of an offset that leads beyond the years that Python has
        read = datetime.fromisoformat(text)
        found = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    if found is None or found < _EPOCH:  # Kafka takes a time before for an offset
        msg = f"{option} is {text!r}; expected a date and time of the years 1970 to 9999, UTC unless it has an offset, such as 2026-01-31T10:00"
        raise StreamgaugeError(msg)
    return found
